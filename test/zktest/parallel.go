package zktest

import "flag"

// Parallel lets so many parallel tests of a package run at once, unless the
// command line says how many: tests with servers and sessions mostly wait, and
// how many of them may is not a matter of cores. It is for TestMain.
func Parallel(count string) {
	flag.Parse()
	told := false
	flag.Visit(func(f *flag.Flag) { told = told || f.Name == "test.parallel" })
	if !told {
		_ = flag.Set("test.parallel", count) // no test without this flag
	}
}
