//go:build !unix

package kit

// NonBlock has the opening of a file wait for no pipe and no device, where there are such.
const NonBlock = 0
