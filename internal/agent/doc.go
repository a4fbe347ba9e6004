// Package agent is what runs inside every pod: it restores /workspace from the
// volume, lets people in by SSH, keeps the volume synced in the background,
// and makes the last sync when the pod is to end. It holds one token and asks
// the control plane, over internal/agentapi, for everything else; nobody calls
// it but SSH clients.
//
// What always holds: no login before the restore is whole; no commit before
// the restore was reported; nothing is uploaded or committed after the control
// plane said that the attachment is over; a control plane that is away changes
// nothing for the people in the pod. Keys and tokens stay in memory.
//
// How files become objects is the business of internal/snapshot, and the
// namespaces around the agent are made by internal/sandboxinit.
package agent
