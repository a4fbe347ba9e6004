package pg

import (
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"
)

// uuidCodec writes and reads ids as their 16 bytes. pgx knows the type only as
// one that turns into text: it tries that, fails, and reads the text again, for
// each id of each statement.
type uuidCodec struct{ pgtype.UUIDCodec }

func (c uuidCodec) PlanEncode(m *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	if _, ok := value.(uuid.UUID); ok && format == pgtype.BinaryFormatCode {
		return encodeUUID{}
	}
	return c.UUIDCodec.PlanEncode(m, oid, format, value)
}

func (c uuidCodec) PlanScan(m *pgtype.Map, oid uint32, format int16, target any) pgtype.ScanPlan {
	if _, ok := target.(*uuid.UUID); ok && format == pgtype.BinaryFormatCode {
		return scanUUID{}
	}
	return c.UUIDCodec.PlanScan(m, oid, format, target)
}

type encodeUUID struct{}

func (encodeUUID) Encode(value any, buf []byte) ([]byte, error) {
	u, ok := value.(uuid.UUID)
	if !ok {
		return nil, fmt.Errorf("write %T as an id", value)
	}
	return append(buf, u[:]...), nil
}

type scanUUID struct{}

// Scan leaves the target as it is when there is no id, as uuid.UUID itself does.
func (scanUUID) Scan(src []byte, target any) error {
	u, ok := target.(*uuid.UUID)
	switch {
	case !ok:
		return fmt.Errorf("read an id into %T", target)
	case src == nil:
		return nil
	case len(src) != len(u):
		return fmt.Errorf("read an id of %d bytes", len(src))
	}
	copy(u[:], src)
	return nil
}
