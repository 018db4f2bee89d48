package recipe_test

// childMain does the work of a child process, if this is one.
func childMain() bool { return false }
