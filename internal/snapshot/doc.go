// Package snapshot is the volume engine: it turns a folder into immutable,
// encrypted, deduplicated objects and back. The objects form a restic
// repository of format version 2, so that a public tool can check and restore
// every volume.
//
// The agent side syncs (Syncer) and restores (Restore) through Objects; the
// server side creates a repository, reads snapshots and measures them. The
// package speaks neither SQL nor HTTP, and it never decides what the head of a
// volume is: that is the commit, which belongs to the control plane.
//
// What always holds: an object is named by the SHA-256 of its bytes and never
// changes; no byte is written into a restored file before its blob passed its
// MAC and its SHA-256; the tree on disk is read and written through directory
// descriptors that follow no symbolic link.
package snapshot
