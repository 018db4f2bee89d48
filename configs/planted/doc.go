// Package planted has the mistakes that are made on purpose, to prove that tests find them.
// They are in a program only when it is compiled with the build tag "planted".
package planted
