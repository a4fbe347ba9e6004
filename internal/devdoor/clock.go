package devdoor

import (
	"net/http"
	"time"

	"homeport.dev/homeport/internal/provider/sandbox"
)

// clockState is what the clock's door shows.
type clockState struct {
	Now           time.Time `json:"now"` // business time
	OffsetSeconds float64   `json:"offset_seconds"`
}

func (o *doors) clockState() clockState {
	now, offset := o.Now()
	return clockState{Now: now, OffsetSeconds: offset.Seconds()}
}

func (o *doors) readClock(w http.ResponseWriter, _ *http.Request) { o.answer(w, o.clockState()) }

// maxAdvance bounds one move: ten years.
const maxAdvance = 10 * 365 * 24 * 3600

func (o *doors) moveClock(w http.ResponseWriter, r *http.Request) {
	var in struct {
		AdvanceSeconds float64 `json:"advance_seconds"`
	}
	if err := decode(w, r, &in); err != nil {
		o.refuse(w, r, err)
		return
	}
	if in.AdvanceSeconds < 0 || in.AdvanceSeconds > maxAdvance {
		o.refuse(w, r, ErrBody.With("advance_seconds must be from 0 to %d.", maxAdvance))
		return
	}
	by := time.Duration(in.AdvanceSeconds * float64(time.Second)).Truncate(time.Microsecond)
	if _, err := o.Advance(r.Context(), by); err != nil {
		o.refuse(w, r, err)
		return
	}
	o.answer(w, o.clockState())
}

func (o *doors) readScript(w http.ResponseWriter, r *http.Request) {
	script, err := o.Sandbox.Script()
	if err != nil {
		o.refuse(w, r, err)
		return
	}
	o.answer(w, script)
}

func (o *doors) setScript(w http.ResponseWriter, r *http.Request) {
	var script sandbox.Script
	if err := decode(w, r, &script); err != nil {
		o.refuse(w, r, err)
		return
	}
	if err := o.Sandbox.SetScript(r.Context(), script); err != nil {
		o.refuse(w, r, err)
		return
	}
	o.readScript(w, r)
}

func (o *doors) clearScript(w http.ResponseWriter, r *http.Request) {
	if err := o.Sandbox.ClearScript(r.Context()); err != nil {
		o.refuse(w, r, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
