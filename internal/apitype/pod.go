package apitype

import "time"

// Pod is a pod as the dashboard shows it.
type Pod struct {
	ID                 string     `json:"id" doc:"Pod id, a UUID. Its first segment is the SSH host's first label."`
	TeamID             string     `json:"team_id"`
	Status             string     `json:"status" enum:"pending,starting,mounting,ready,switching_off,deleting,deleted"`
	StatusReason       string     `json:"status_reason" doc:"Why the pod is where it is: a stable word, empty when nothing special happened."`
	StatusDetail       string     `json:"status_detail" doc:"The same as a sentence for the user."`
	Progress           int        `json:"progress" minimum:"0" maximum:"100" doc:"Of the restore, or of the final sync."`
	CreatedAt          time.Time  `json:"created_at"`
	ReadyAt            *time.Time `json:"ready_at" doc:"When charging began."`
	DeleteRequestedAt  *time.Time `json:"delete_requested_at" doc:"When charging ended."`
	SyncedAt           *time.Time `json:"synced_at" doc:"Time of the last committed snapshot of this pod."`
	MeteredUntil       *time.Time `json:"metered_until" doc:"Last instant charged; null while the meter runs."`
	EndedAt            *time.Time `json:"ended_at"`
	GPUCount           int        `json:"gpu_count"`
	GPUType            string     `json:"gpu_type"`
	Provider           string     `json:"provider"`
	Country            string     `json:"country"`
	Price              Decimal    `json:"price" doc:"USD per hour of the whole pod, locked until the plan of its team changes."`
	SSHHost            string     `json:"ssh_host" doc:"Host of the SSH command after the pod's own label."`
	SSHPort            *int       `json:"ssh_port" doc:"Null before the pod is ready."`
	HostKeyFingerprint string     `json:"host_key_fingerprint"`
	VolumeID           string     `json:"volume_id"`
	SSHKeyID           string     `json:"ssh_key_id"`
	CreatedBy          string     `json:"created_by" doc:"User id."`
	AutoRelaunch       bool       `json:"auto_relaunch" doc:"When its machine is lost, the pod is started again on another cloud at no higher price."`
	RelaunchPending    bool       `json:"relaunch_pending" doc:"It lost its machine, and another cloud is being looked for."`
	RelaunchOf         *string    `json:"relaunch_of" doc:"The ended pod whose place this one took: with its SSH name and host key, and its port where the cloud allows it."`
	RelaunchedAs       *string    `json:"relaunched_as" doc:"The pod that took this one's place."`
}

// CreatePod asks for a pod. Beside the ids it echoes the offer; the server
// prices it from its own catalogue and takes price as the caller's maximum.
type CreatePod struct {
	_ struct{} `additionalProperties:"true"`

	VolumeID        string   `json:"volume_id"`
	SSHKeyID        string   `json:"ssh_key_id"`
	TeamID          string   `json:"team_id"`
	CloudID         string   `json:"cloud_id"`
	GPUType         string   `json:"gpu_type"`
	Socket          string   `json:"socket,omitempty"`
	Country         string   `json:"country,omitempty"`
	GPUCount        int      `json:"gpu_count"`
	GPUMemory       *Decimal `json:"gpu_memory,omitempty" nullable:"true"`
	VCPU            *Decimal `json:"vcpu,omitempty" nullable:"true"`
	Memory          *Decimal `json:"memory,omitempty" nullable:"true"`
	Price           Decimal  `json:"price" doc:"The most to pay, USD per hour of the whole pod."`
	Currency        string   `json:"currency,omitempty"`
	DefaultDiskSize *Decimal `json:"default_disk_size,omitempty" nullable:"true"`
	DiskPrice       *Decimal `json:"disk_price,omitempty" nullable:"true"`
	Security        string   `json:"security,omitempty"`
	Provider        string   `json:"provider"`
	IsSpot          bool     `json:"is_spot,omitempty"`
	DataCenterID    *string  `json:"data_center_id,omitempty" nullable:"true"`
	Image           *string  `json:"image,omitempty" nullable:"true"`
	AutoRelaunch    bool     `json:"auto_relaunch,omitempty" doc:"Start the pod again on another cloud, at no higher price, when its machine is lost."`
	RelaunchOf      *string  `json:"relaunch_of,omitempty" nullable:"true" doc:"An ended pod whose SSH name, host key and, if free, port the new one gets."`
}

// ChangePod changes a pod that has not ended.
type ChangePod struct {
	AutoRelaunch bool `json:"auto_relaunch"`
}
