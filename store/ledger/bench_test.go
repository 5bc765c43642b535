package ledger_test

import (
	"testing"

	"grl/store/storetest"
)

func BenchmarkApply(b *testing.B) { storetest.BenchmarkApply(b, open) }
