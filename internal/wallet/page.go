package wallet

import (
	"encoding/base64"
	"encoding/json"
	"math"

	"github.com/google/uuid"
)

// A cursor says where each of the three lists of a team's history goes on.
type cursor struct {
	Money   int64    `json:"m"` // transfers below this id
	Pods    position `json:"p"`
	Storage position `json:"s"`
}

// A position is the last day row that was given out.
type position struct {
	DayUS    int64     `json:"d"`
	Resource uuid.UUID `json:"r"`
}

func (p position) row() dayRow { return dayRow{DayUS: p.DayUS, Resource: p.Resource} }

// top is the cursor of the first page.
func top() cursor {
	start := position{DayUS: math.MaxInt64, Resource: uuid.Max}
	return cursor{Money: math.MaxInt64, Pods: start, Storage: start}
}

// parseCursor reads what String wrote; empty is the top. The fault is ErrCursor.
func parseCursor(text string) (cursor, error) {
	if text == "" {
		return top(), nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return cursor{}, ErrCursor.Because(err)
	}
	var c cursor
	if err := json.Unmarshal(raw, &c); err != nil {
		return cursor{}, ErrCursor.Because(err)
	}
	return c, nil
}

// String writes the cursor for a client to hand back.
func (c cursor) String() string {
	raw, err := json.Marshal(c)
	if err != nil {
		panic(err) // a struct of numbers and ids always marshals
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}

// quotas splits a page of limit rows among the three lists, given how many
// each has: up to three in ten for money, then pods and storage alike; what
// one leaves goes to the others, so that a page is full while there is more.
func quotas(limit, moneyRows, pods, storage int) (m, p, v int) {
	m = min(moneyRows, max(1, limit*3/10), limit)
	p = min(pods, (limit-m+1)/2)
	v = min(storage, limit-m-p)
	p = min(pods, limit-m-v)
	m = min(moneyRows, limit-p-v)
	return m, p, v
}
