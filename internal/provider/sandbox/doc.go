// Package sandbox is the cloud that needs no cloud: several providers under
// invented names whose machines are sandboxes on this host, with real SSH, made
// of Linux namespaces by package sandboxinit. It behaves as the real clouds do
// when asked to (see Script) and is the test bed of everything that launches,
// finds and ends machines.
//
// A machine is a folder, <Dir>/<cloud>/<name>, and the process that its
// birth.json names. What always holds: a folder appears whole and under one
// name only, so that two nodes on one Dir never launch a name twice; PID 1 is
// recorded before it runs, so that no crash of a node leaves an unknown pod; a
// machine that Find does not list has no process, no mount and no file left.
// Machines outlive the node; any node on the same Dir finds, serves and ends
// them. The GPUs are not real and the kernel is shared: this is for trying
// things out among people who trust each other.
package sandbox
