package team

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/fault"
)

// The bounds of a team that is paid for.
const (
	maxSeats       = 100
	maxDescription = 1000
)

// Faults of asking for a new team.
var (
	// ErrDescription occurs when a team's description is too long.
	ErrDescription = fault.New(fault.Invalid, "team_description", "The description must have at most 1000 characters.")
	// ErrSeatCount occurs when the number of members is missing, no whole number
	// or not from 1 to 100.
	ErrSeatCount = fault.New(fault.Invalid, "team_member_count", "Please enter a valid number")
)

// A Plot is a team that somebody is about to pay for: what it will be.
type Plot struct {
	TeamID      uuid.UUID
	By          uuid.UUID // who pays, and will be its admin
	Name        string
	Description string
	Seats       int
}

// NewPlot checks what a person wrote about a new team; seats is their number as
// text. The faults are ErrName, ErrDescription and ErrSeatCount.
func NewPlot(teamID, by uuid.UUID, name, description, seats string) (Plot, error) {
	if strings.TrimSpace(name) == "" {
		return Plot{}, ErrName.With("Team name is required")
	}
	name, err := cleanName(name)
	if err != nil {
		return Plot{}, err
	}
	description = cleanText(description)
	if utf8.RuneCountInString(description) > maxDescription {
		return Plot{}, ErrDescription
	}
	count, err := ParseSeats(seats)
	if err != nil {
		return Plot{}, err
	}
	return Plot{TeamID: teamID, By: by, Name: name, Description: description, Seats: count}, nil
}

// cleanText trims a text of several lines and takes out what cannot be shown.
func cleanText(text string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' || r == utf8.RuneError {
			return -1
		}
		return r
	}, text))
}

// ParseSeats reads a number of seats as a client wrote it. The fault is
// ErrSeatCount.
func ParseSeats(text string) (int, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return 0, ErrSeatCount.With("Number of members is required")
	}
	whole, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil || whole != math.Trunc(whole):
		return 0, ErrSeatCount
	case whole < 1:
		return 0, ErrSeatCount.With("At least 1 member is required")
	case whole > maxSeats:
		return 0, ErrSeatCount.With("Maximum 100 members allowed")
	}
	return int(whole), nil
}

const sqlInsertPlot = `
insert into team (id, name, description, plan, state, created_by, created_at, expires_at)
values (@id, @name, @description, 'hobby', 'inactive', @by, @now, @until)`

// ReserveTx keeps a place for a team until it is paid or released. Nobody sees
// it and nobody is in it.
func ReserveTx(ctx context.Context, tx pgx.Tx, p Plot, now, until time.Time) error {
	_, err := tx.Exec(ctx, sqlInsertPlot, pgx.NamedArgs{
		"id": p.TeamID, "name": p.Name, "description": p.Description, "by": p.By, "now": now, "until": until,
	})
	if err != nil {
		return fmt.Errorf("reserve team %s: %w", p.TeamID, err)
	}
	return nil
}

const sqlDeletePlot = `delete from team where id = $1 and state = 'inactive'`

// ReleaseTx takes a reserved team away, and leaves one that is active.
func ReleaseTx(ctx context.Context, tx pgx.Tx, teamID uuid.UUID) error {
	if _, err := tx.Exec(ctx, sqlDeletePlot, teamID); err != nil {
		return fmt.Errorf("release team %s: %w", teamID, err)
	}
	return nil
}
