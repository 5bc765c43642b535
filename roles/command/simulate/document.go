package simulate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/goccy/go-yaml"

	"grl/roles/fleet"
)

// document is what a machine reads of sections.
type document struct {
	Runs []runDocument `json:"runs"` // by section, then by law
}

type runDocument struct {
	Command  string        `json:"command"` // runs it again, with all laws of its section
	Scenario string        `json:"scenario"`
	Law      string        `json:"law"`
	Seed     uint64        `json:"seed"`
	Seconds  float64       `json:"seconds"` // of virtual time
	Metrics  fleet.Metrics `json:"metrics"`
	Requests requests      `json:"requests"`
	Buckets  []bucketRow   `json:"buckets,omitempty"` // with limits files
}

type requests struct {
	Offered  uint64 `json:"offered"`
	Admitted uint64 `json:"admitted"`
	Dropped  uint64 `json:"dropped"`
}

// WriteJSON writes sections as one object.
func WriteJSON(w io.Writer, sections []*Section) error {
	text, err := marshal(sections)
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

// WriteYAML writes the object of WriteJSON as YAML.
func WriteYAML(w io.Writer, sections []*Section) error {
	text, err := marshal(sections)
	if err != nil {
		return err
	}
	if text, err = yaml.JSONToYAML(text); err != nil {
		return fmt.Errorf("write YAML: %w", err)
	}
	_, err = w.Write(text)
	return err
}

func marshal(sections []*Section) ([]byte, error) {
	doc := document{Runs: []runDocument{}}
	for _, s := range sections {
		for _, r := range s.Results {
			run := runDocument{
				Command: s.Command, Scenario: r.Scenario, Law: r.Law, Seed: s.Options.Seed, Seconds: r.Length.Seconds(),
				Metrics:  r.Metrics,
				Requests: requests{r.Requests.Offered, r.Requests.Admitted(), r.Requests.Dropped},
			}
			if s.Options.Configuration != nil {
				run.Buckets = s.bucketRows(r)
			}
			doc.Runs = append(doc.Runs, run)
		}
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(doc); err != nil {
		return nil, fmt.Errorf("write JSON: %w", err)
	}
	return text.Bytes(), nil
}
