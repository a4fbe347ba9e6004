package snapshot

import "homeport.dev/homeport/internal/fault"

// Faults of the engine.
var (
	// ErrDamaged occurs when stored data does not have the bytes it should
	// have, also after it was fetched once more, or is not there at all.
	ErrDamaged = fault.New(fault.Internal, "volume_damaged", "Data of this volume is damaged in the store.")
	// ErrKey occurs when bytes are not a key, or a repository has another key.
	ErrKey = fault.New(fault.Internal, "volume_key_unfit", "The key does not fit this volume.")
	// ErrTooLarge occurs when a tree has more entries than the engine takes.
	ErrTooLarge = fault.New(fault.Invalid, "volume_too_many_files", "The volume has too many files.")
	// ErrNoEntry occurs when a snapshot has nothing at a path.
	ErrNoEntry = fault.New(fault.NotFound, "version_path", "There is no such file or folder in this version.")
	// ErrNotFolder occurs when a path that is to be listed is no folder.
	ErrNotFolder = fault.New(fault.Invalid, "version_not_folder", "This is not a folder.")
	// ErrNotFile occurs when a path that is to be read is a folder, a link or a device.
	ErrNotFile = fault.New(fault.Invalid, "version_not_file", "This is not a file. A folder can be downloaded as a tar archive.")
	// ErrDiskFull occurs when a restore finds no room for what it writes.
	ErrDiskFull = fault.New(fault.Unavailable, "disk_full", "The pod's disk is too small for the volume.")
)
