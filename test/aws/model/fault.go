package model

import (
	"encoding/json"
	"encoding/xml"
	"net/http"
	"strings"
)

// Fault makes the answer that tells of a fault, in the service's own form.
func (s *Service) Fault(f *Fault, requestID string) *Answer {
	a := &Answer{Status: f.Status, Header: http.Header{}}
	switch s.Metadata.Protocol {
	case "ec2":
		a.Header.Set("Content-Type", "text/xml;charset=UTF-8")
		a.Body = []byte(xml.Header + "<Response><Errors><Error>" + codeAndMessage(f) + "</Error></Errors><RequestID>" + requestID + "</RequestID></Response>")
	case "query":
		a.Header.Set("Content-Type", "text/xml")
		a.Body = []byte(`<ErrorResponse xmlns="` + s.Metadata.XMLNamespace + `"><Error><Type>Sender</Type>` + codeAndMessage(f) +
			"</Error><RequestId>" + requestID + "</RequestId></ErrorResponse>")
	case "rest-xml":
		a.Header.Set("Content-Type", "application/xml")
		a.Body = []byte(xml.Header + "<Error>" + codeAndMessage(f) + "<RequestId>" + requestID + "</RequestId></Error>")
	case "json":
		a.Header.Set("Content-Type", "application/x-amz-json-1.1")
		a.Body, _ = json.Marshal(map[string]string{"__type": f.Code, "Message": f.Message})
	default:
		a.Header.Set("Content-Type", "application/json")
		a.Header.Set("X-Amzn-Errortype", f.Code)
		a.Body, _ = json.Marshal(map[string]string{"Message": f.Message})
	}
	return a
}

func codeAndMessage(f *Fault) string {
	var text strings.Builder
	_ = xml.EscapeText(&text, []byte(f.Message)) // a builder takes all
	return "<Code>" + f.Code + "</Code><Message>" + text.String() + "</Message>"
}
