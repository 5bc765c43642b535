package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"grl/store"
)

// Mute keeps an alert from being sent.
type Mute struct {
	Rule    string    `json:"rule"`              // a word such as "over_limit"
	Subject string    `json:"subject,omitempty"` // "": all of the rule
	Until   time.Time `json:"until"`
	By      string    `json:"by"`
	Reason  string    `json:"reason"`
}

// Bounds of mutes.
const (
	MaxMutes    = 200            // that have not ended
	MaxMuteLife = 24 * time.Hour // from muting to the end
	maxSubject  = 600            // bytes of one: two names and what is between
)

const keyMutes = "alert-mutes"

// Mutes returns the mutes that have not ended at a time.
func (l *Ledger) Mutes(ctx context.Context, now time.Time) ([]Mute, error) {
	records, err := l.engine.Get(ctx, keyMutes)
	var all []Mute
	if err == nil {
		err = decode(records[0], &all)
	}
	if err != nil {
		return nil, fmt.Errorf("read mutes: %w", err)
	}
	return lasting(all, now), nil
}

func lasting(all []Mute, now time.Time) []Mute {
	return slices.DeleteFunc(all, func(m Mute) bool { return !m.Until.After(now) })
}

// Mute mutes an alert until a time, in the name and for the reason of act, in
// place of a mute that there is; a time that is not after act.At ends it. The
// audit has it as "alert.mute" or "alert.unmute". ErrNotFound if there is no mute
// to end; ErrTooMany if there are MaxMutes.
func (l *Ledger) Mute(ctx context.Context, act Act, rule, subject string, until time.Time) error {
	m := Mute{Rule: rule, Subject: subject, Until: until.UTC().Truncate(time.Millisecond), By: bounded(act.Actor, maxCapText), Reason: bounded(act.Reason, maxCapText)}
	err := act.validate()
	if err == nil {
		err = m.validate(act.At)
	}
	if err == nil {
		err = l.change(ctx, []string{keyMutes}, func(_ context.Context, records []store.Record) (*plan, error) {
			var all []Mute
			if err := decode(records[0], &all); err != nil {
				return nil, err
			}
			entry, all, err := m.put(&act, lasting(all, act.At))
			if err != nil {
				return nil, err
			}
			return &plan{writes: []store.Write{put(keyMutes, all)}, entry: entry}, nil
		})
	}
	if err != nil {
		return fmt.Errorf("mute %s %q: %w", rule, subject, err)
	}
	return nil
}

func (m *Mute) validate(now time.Time) error {
	var errs []error
	if m.Rule == "" || len(m.Rule) > maxCapText {
		errs = append(errs, fmt.Errorf("rule of %d bytes, want 1 to %d", len(m.Rule), maxCapText))
	}
	if len(m.Subject) > maxSubject {
		errs = append(errs, fmt.Errorf("subject of %d bytes, at most %d", len(m.Subject), maxSubject))
	}
	if life := m.Until.Sub(now); life > MaxMuteLife {
		errs = append(errs, fmt.Errorf("lasts %v, at most %v", life, MaxMuteLife))
	}
	return errors.Join(errs...)
}

// put returns the mutes with m in its place, or without it if it has ended.
func (m *Mute) put(act *Act, all []Mute) (*Entry, []Mute, error) {
	subject := "alert " + m.Rule
	if m.Subject != "" {
		subject += " " + m.Subject
	}
	before := ""
	at := slices.IndexFunc(all, func(other Mute) bool { return other.Rule == m.Rule && other.Subject == m.Subject })
	if at >= 0 {
		before = string(encode(all[at]))
		all = slices.Delete(all, at, at+1)
	}
	if !m.Until.After(act.At) {
		if at < 0 {
			return nil, nil, ErrNotFound
		}
		return act.entry("alert.unmute", []string{subject}, before, ""), all, nil
	}
	if len(all) >= MaxMutes {
		return nil, nil, fmt.Errorf("%w: there are %d mutes", ErrTooMany, len(all))
	}
	return act.entry("alert.mute", []string{subject}, before, string(encode(m))), append(all, *m), nil
}
