package apitype

import "time"

// Version is a committed state of a volume that is kept.
type Version struct {
	Version      int64     `json:"version" doc:"Its number; later versions have higher ones."`
	CreatedAt    time.Time `json:"created_at"`
	Newest       bool      `json:"newest" doc:"What the next pod finds."`
	SizeGB       Decimal   `json:"size_gb" doc:"10^9 bytes, 2 decimals."`
	SizeBytes    int64     `json:"size_bytes" doc:"File data that is not holes, hard links once."`
	Entries      int64     `json:"entries" doc:"Files, folders and others."`
	Kind         string    `json:"kind" enum:"background,final,restored"`
	PodID        *string   `json:"pod_id" doc:"The pod that wrote it; null for a restored one."`
	RestoredFrom *int64    `json:"restored_from" doc:"The version whose files it has again; null for one that a pod wrote."`
	FilesAdded   *int64    `json:"files_added" doc:"Files, links and devices that the version before it in the list has not; null when not known."`
	FilesChanged *int64    `json:"files_changed" doc:"Those with other bytes; null when not known."`
	FilesRemoved *int64    `json:"files_removed" doc:"Those that only the version before has; null when not known."`
	Skipped      int64     `json:"skipped" doc:"Entries that could not be read."`
	Unstable     int64     `json:"unstable" doc:"Files that changed while they were read."`
}

// Folder is a part of a folder of a version.
type Folder struct {
	Version int64         `json:"version"`
	Path    string        `json:"path" doc:"Of the folder; empty for /workspace itself."`
	Total   int           `json:"total" doc:"Entries in the whole folder."`
	Offset  int           `json:"offset" doc:"Of the first of these."`
	Entries []FolderEntry `json:"entries" doc:"Folders first, each by name."`
}

// FolderEntry is one entry of a folder of a version.
type FolderEntry struct {
	Name       string    `json:"name" doc:"For people: bytes that are not UTF-8 are replaced."`
	Path       string    `json:"path" doc:"From /workspace; to be sent as path as it is here. % and bytes that are not UTF-8 are written as %XX."`
	Type       string    `json:"type" enum:"folder,file,link,other"`
	Size       int64     `json:"size" doc:"Bytes; 0 for what is no file."`
	ModifiedAt time.Time `json:"modified_at"`
	Mode       string    `json:"mode" doc:"As ls writes it, such as -rw-r--r--."`
	Target     *string   `json:"target" doc:"Where a link points to; null otherwise."`
}
