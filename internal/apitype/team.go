package apitype

import "time"

// TeamRef names a team.
type TeamRef struct {
	ID   string `json:"id" doc:"Team id, a UUID."`
	Name string `json:"name"`
}

// Team is a team as its members see it.
type Team struct {
	ID          string    `json:"id" doc:"Team id, a UUID."`
	Name        string    `json:"name"`
	Description string    `json:"description"`
	Plan        string    `json:"plan" enum:"free,hobby,pro"`
	IsPersonal  bool      `json:"is_personal"`
	MaxMembers  *int      `json:"max_members,omitempty" doc:"Seats paid for; absent on a plan without seats."`
	Role        string    `json:"role" enum:"admin,member,viewer" doc:"The caller's role in the team."`
	CreatedAt   time.Time `json:"created_at"`
}

// UserInfo is who the session belongs to, and their teams, the personal one first.
type UserInfo struct {
	UserID       string  `json:"user_id"`
	Email        string  `json:"email"`
	PersonalTeam TeamRef `json:"personal_team"`
	Teams        []Team  `json:"teams" nullable:"false"`
	Operator     bool    `json:"operator,omitempty" doc:"True for those who run this Homeport, absent for all others."`
}

// Member is one member of a team.
type Member struct {
	ID     string `json:"id"`
	UserID string `json:"user_id"`
	Email  string `json:"email"`
	Role   string `json:"role" enum:"admin,member,viewer"`
}

// Invitation waits for somebody who has no account yet.
type Invitation struct {
	ID        string    `json:"id" doc:"Invitation id, a UUID."`
	Email     string    `json:"email" doc:"Without upper case."`
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at"`
}

// Invite asks somebody into a team.
type Invite struct {
	_ struct{} `additionalProperties:"true"`

	Email string `json:"email"`
}

// Invited is what became of an invitation at once.
type Invited struct {
	Status string `json:"status" enum:"accepted,pending" doc:"accepted: the person had an account and is a member now."`
}

// ChangeTeam changes what is given of a team.
type ChangeTeam struct {
	_ struct{} `additionalProperties:"true"`

	Name       *string  `json:"name,omitempty" doc:"1 to 80 characters."`
	SpendLimit *Decimal `json:"spend_limit,omitempty" doc:"USD per calendar month, above 0 and at most the plan's; the plan's own amount removes a lower one."`
}

// ChangeMember gives a member another role.
type ChangeMember struct {
	_ struct{} `additionalProperties:"true"`

	Role string `json:"role" enum:"admin,member,viewer"`
}

// Interest says whether a team waits for a product that is not there yet.
type Interest struct {
	TeamID     string `json:"team_id"`
	Product    string `json:"product" enum:"batch-inference,multi-node-clusters"`
	Interested bool   `json:"interested"`
}

// SetInterest says or withdraws it.
type SetInterest struct {
	_ struct{} `additionalProperties:"true"`

	TeamID     string `json:"team_id"`
	Product    string `json:"product" enum:"batch-inference,multi-node-clusters"`
	Interested bool   `json:"interested"`
}

// Config is what the page must know before it can call anything.
type Config struct {
	APIBase      string `json:"api_base"`
	AuthURL      string `json:"auth_url"`
	PodHost      string `json:"pod_host"`
	SupportEmail string `json:"support_email"`
	SalesEmail   string `json:"sales_email"`
}
