package apitype

import "time"

// Volume is a volume as the dashboard shows it.
type Volume struct {
	ID            string     `json:"id"`
	TeamID        string     `json:"team_id"`
	Name          string     `json:"name"`
	SizeGB        Decimal    `json:"size_gb" doc:"Of the last committed snapshot, 10^9 bytes, 2 decimals; of 500."`
	PricePerHour  Decimal    `json:"price_per_hour" doc:"size_gb x 0.0002 USD."`
	CurrentlyUsed bool       `json:"currently_used"`
	Deleted       bool       `json:"deleted"`
	CreatedAt     time.Time  `json:"created_at"`
	DeletedAt     *time.Time `json:"deleted_at"`
	PurgeAt       *time.Time `json:"purge_at" doc:"Until when a deleted volume can be restored."`
	SyncedAt      *time.Time `json:"synced_at" doc:"Time of the last commit."`
	CreatedBy     string     `json:"created_by"`
	TeamKey       bool       `json:"team_key" doc:"Its key is its team's alone: at rest nobody reads it without, and a lost key is lost files."`
	Locked        bool       `json:"locked" doc:"Its key has to be given (unlock) before pods, files or versions can use it."`
}

// CreateVolume asks for a volume.
type CreateVolume struct {
	_ struct{} `additionalProperties:"true"`

	Name   string `json:"name,omitempty" doc:"Trimmed; 'Untitled' when empty; at most 80 characters."`
	TeamID string `json:"team_id"`

	Key *string `json:"key,omitempty" nullable:"true" doc:"Makes a volume that only this key opens. Draw 32 random bytes: hpk_ and 43 characters of base64url. It is the password of the volume's restic repository, kept nowhere here; a lost key is lost files."`
}

// UnlockVolume gives a volume's key for a while.
type UnlockVolume struct {
	_ struct{} `additionalProperties:"true"`

	Key string `json:"key" doc:"As given when the volume was created."`
}

// Segment is a stretch of time at one rate.
type Segment struct {
	From time.Time  `json:"from"`
	To   *time.Time `json:"to" doc:"Null while it runs."`
	Rate Decimal    `json:"rate" doc:"USD per hour."`
}

// SSHKey is a public key.
type SSHKey struct {
	ID          string    `json:"id"`
	TeamID      string    `json:"team_id"`
	Name        string    `json:"name"`
	PublicKey   string    `json:"public_key"`
	KeyType     string    `json:"key_type"`
	Fingerprint string    `json:"fingerprint"`
	CreatedAt   time.Time `json:"created_at"`
	CreatedBy   string    `json:"created_by"`
}

// CreateSSHKey asks to keep a public key.
type CreateSSHKey struct {
	_ struct{} `additionalProperties:"true"`

	Name      string `json:"name,omitempty"`
	PublicKey string `json:"public_key"`
	TeamID    string `json:"team_id"`
}

// Offer is something rentable now. Memory, disk and price are totals of the
// configuration.
type Offer struct {
	GPUType         string   `json:"gpuType"`
	GPUCount        int      `json:"gpuCount"`
	GPUMemory       int      `json:"gpuMemory" doc:"GB of all GPUs together."`
	Memory          int      `json:"memory" doc:"GB."`
	VCPU            int      `json:"vcpu"`
	Price           Decimal  `json:"price" doc:"USD per hour for the team's plan."`
	ListPrice       Decimal  `json:"listPrice" doc:"USD per hour without a plan."`
	Socket          string   `json:"socket"`
	Country         string   `json:"country"`
	Provider        string   `json:"provider"`
	CloudID         string   `json:"cloudId"`
	Currency        string   `json:"currency"`
	DefaultDiskSize int      `json:"defaultDiskSize" doc:"GB."`
	DiskPrice       *Decimal `json:"diskPrice" nullable:"true" doc:"USD per GB and hour on top; null when included."`
	Security        string   `json:"security"`
	IsSpot          bool     `json:"isSpot"`
	DataCenterID    *string  `json:"dataCenterId" nullable:"true"`
	Image           string   `json:"image"`
}
