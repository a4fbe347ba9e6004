// Package sandboxinit turns a process that the sandbox cloud started into PID 1
// of a pod: it builds the pod's own root file system out of an allow-list of
// the host's files, enters the namespaces, and hands what the agent needs to
// the function it was given. It reads its plan from an inherited file and
// never from the environment, which the pod's user could read. What PID 1 then
// does is the agent's business.
//
// Namespaces share the host's kernel: a sandbox pod is for evaluation and for
// people who trust each other, not for strangers.
package sandboxinit
