package api

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// strictJSON is the JSON of Connect, but for fields that it does not know: they
// are refused. Else a change with a misspelt dryRun would be made.
type strictJSON struct{ name string }

// Name returns the name under which requests ask for the codec.
func (c strictJSON) Name() string { return c.name }

// Marshal writes a message.
func (c strictJSON) Marshal(m any) ([]byte, error) {
	message, ok := m.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("%T is no message", m)
	}
	return protojson.Marshal(message)
}

// Unmarshal reads a message.
func (c strictJSON) Unmarshal(data []byte, m any) error {
	message, ok := m.(proto.Message)
	if !ok {
		return fmt.Errorf("%T is no message", m)
	}
	if len(data) == 0 {
		return fmt.Errorf("no JSON: the least is {}")
	}
	return protojson.Unmarshal(data, message)
}
