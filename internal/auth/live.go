package auth

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/pg"
)

// liveFor is how long a node trusts what it read about a session.
const liveFor = 5 * time.Second

// revokedChannel carries the ids of sessions that ended.
const revokedChannel = "auth_session_revoked"

// A liveSession is what was read about a session.
type liveSession struct {
	user   uuid.UUID
	until  time.Time // it ends by itself
	readAt time.Time
}

// liveSessions remembers sessions that were alive a moment ago. Without a hub
// it remembers nothing, and every call asks the database.
type liveSessions struct {
	known  *cache[uuid.UUID, liveSession]
	ended  atomic.Int64 // counts endings: what was read before one is not kept
	revoke <-chan string
	cancel func()
	once   sync.Once
}

func newLiveSessions(hub *pg.Hub) *liveSessions {
	l := &liveSessions{known: newCache[uuid.UUID, liveSession](8192), cancel: func() {}}
	if hub != nil {
		l.revoke, l.cancel = hub.Subscribe(revokedChannel)
	}
	return l
}

func (l *liveSessions) close() { l.once.Do(l.cancel) }

// find returns a session that was seen alive and not heard to have ended.
func (l *liveSessions) find(session uuid.UUID, now time.Time) (liveSession, bool) {
	l.listen()
	s, ok := l.known.get(session)
	if !ok || now.Sub(s.readAt) >= liveFor || !now.Before(s.until) {
		return liveSession{}, false
	}
	return s, true
}

// keep remembers a session that was read after mark was taken.
func (l *liveSessions) keep(session uuid.UUID, s liveSession, mark int64) {
	if l.revoke == nil || l.ended.Load() != mark {
		return
	}
	l.known.put(session, s)
}

// mark is to be taken before a session is read.
func (l *liveSessions) mark() int64 { return l.ended.Load() }

// end forgets a session.
func (l *liveSessions) end(session uuid.UUID) {
	l.ended.Add(1)
	l.known.drop(session)
}

// endAll forgets every session.
func (l *liveSessions) endAll() {
	l.ended.Add(1)
	l.known.clear()
}

// listen takes in what other nodes said. It never waits.
func (l *liveSessions) listen() {
	for {
		select {
		case payload, open := <-l.revoke:
			if !open { // the service was closed
				l.endAll()
				return
			}
			if session, ok := id.Parse(payload); ok {
				l.end(session)
				continue
			}
			l.endAll() // the hub was away: anything may have ended
		default:
			return
		}
	}
}
