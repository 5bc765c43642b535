package configurator

import (
	"context"
	"fmt"
	"time"

	"grl/roles/configurator/history"
)

// checkedFor is of how long before a cycle two histories are compared.
const checkedFor = time.Hour

// doubts is what the controller's own history says of the last hour, by bucket
// and instance, where another source is asked for the past: what a fleet counts
// is known twice.
type doubts map[string]map[string]history.Unit

// crossCheck reads the last hour of the controller's own history, unless that is
// the source.
func (y *cycle) crossCheck(ctx context.Context, query history.Query) (doubts, error) {
	if y.source.Name() == Own {
		return nil, nil
	}
	query.From = query.To.Add(-checkedFor)
	d := make(doubts)
	err := y.own().Read(ctx, query, func(b history.Bucket) error {
		d[b.Name] = make(map[string]history.Unit, len(b.Units))
		for _, u := range b.Units {
			d[b.Name][u.Instance] = u
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("compare with the controller's own history: %w", err)
	}
	return d, nil
}

// doubt refuses the units of which the controller counted something else.
func (d doubts) doubt(b history.Bucket) history.Bucket {
	if d == nil {
		return b
	}
	for i := range b.Units {
		u := &b.Units[i]
		own, ok := d[b.Name][u.Instance]
		if ok && u.Refused == "" && history.Disagrees(own.Series, u.Series) {
			u.Refused, u.NoLower = "mismatch", ""
		}
	}
	return b
}
