//go:build !planted

package planted

// Bug reports whether the mistake of that name is to be made. It never is.
func Bug(string) bool { return false }
