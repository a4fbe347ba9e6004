// Package arch holds the rules of docs and guide that a machine can check: who
// imports whom, whose table is whose, how long a file may be. It has tests only.
package arch
