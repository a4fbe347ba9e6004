package auth

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// A User is a person whose address was proven.
type User struct {
	ID               uuid.UUID `db:"id"`
	Email            string    `db:"email"`
	CreatedAt        time.Time `db:"created_at"`
	EmailConfirmedAt time.Time `db:"email_confirmed_at"`
	LastSignInAt     time.Time `db:"last_sign_in_at"`
}

const sqlFindUserByEmail = `
	select id, email, created_at, email_confirmed_at, last_sign_in_at
	from auth_user where email_folded = $1`

// FindUserTx returns the user of an address, compared without case. found is
// false when nobody has proven that address.
func (s *Service) FindUserTx(ctx context.Context, tx pgx.Tx, email string) (user User, found bool, err error) {
	rows, err := tx.Query(ctx, sqlFindUserByEmail, FoldEmail(email))
	if err != nil {
		return User{}, false, fmt.Errorf("find a user by address: %w", err)
	}
	user, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[User])
	if errors.Is(err, pgx.ErrNoRows) {
		return User{}, false, nil
	}
	if err != nil {
		return User{}, false, fmt.Errorf("find a user by address: %w", err)
	}
	return user, true, nil
}

const sqlListEmails = `select id, email from auth_user where id = any($1::uuid[])`

// EmailsTx returns the addresses of users. Unknown users are left out.
func (s *Service) EmailsTx(ctx context.Context, tx pgx.Tx, users []uuid.UUID) (map[uuid.UUID]string, error) {
	rows, err := tx.Query(ctx, sqlListEmails, users)
	if err != nil {
		return nil, fmt.Errorf("list addresses: %w", err)
	}
	emails := make(map[uuid.UUID]string, len(users))
	var user uuid.UUID
	var email string
	_, err = pgx.ForEachRow(rows, []any{&user, &email}, func() error {
		emails[user] = email
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list addresses: %w", err)
	}
	return emails, nil
}

const sqlSignInUser = `
	insert into auth_user (id, email, email_folded, created_at, email_confirmed_at, last_sign_in_at)
	values (@id, @email, @folded, @now, @now, @now)
	on conflict (email_folded) do update set last_sign_in_at = excluded.last_sign_in_at
	returning id, email, created_at, email_confirmed_at, last_sign_in_at`

// signInUserTx makes the user of an address, or notes that they are here again.
func signInUserTx(ctx context.Context, tx pgx.Tx, newID uuid.UUID, email string, now time.Time) (User, error) {
	rows, err := tx.Query(ctx, sqlSignInUser, pgx.NamedArgs{
		"id": newID, "email": email, "folded": FoldEmail(email), "now": now,
	})
	if err != nil {
		return User{}, fmt.Errorf("sign a user in: %w", err)
	}
	user, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[User])
	if err != nil {
		return User{}, fmt.Errorf("sign a user in: %w", err)
	}
	return user, nil
}

// maySignInTx says whether an address has a user, or may get one.
func (s *Service) maySignInTx(ctx context.Context, tx pgx.Tx, email string, mayCreate bool) (bool, error) {
	_, found, err := s.FindUserTx(ctx, tx, email)
	if err != nil || found {
		return found, err
	}
	if !mayCreate || s.SignUp == SignUpOpen {
		return mayCreate, nil
	}
	if s.Invited == nil {
		return false, nil
	}
	return s.Invited(ctx, tx, email)
}
