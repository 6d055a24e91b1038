package quartermaster

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// phrasebook are turns of phrase that speak to a model about something else
// than the tool. Words with | between them are alternatives, ~3 lets up to
// three words of the same sentence stand in between. Only orders are meant: what a tool does or does
// not do is told in other forms of the verb.
var phrasebook = []struct {
	rule    Rule
	reason  string
	phrases []string
}{
	{RuleOverride, "tells the model to set its instructions aside", []string{
		"ignore|disregard|forget|override|bypass ~3 previous|prior|preceding|above|earlier|system|safety|your ~3 instruction|instructions|rule|rules|prompt|prompts|guideline|guidelines|directive|directives|guidance|safeguards|policies",
		"ignore|disregard|forget|override|bypass all|any|every|other ~2 instructions|rules|prompts|guidelines|directives|safeguards",
		"ignore|disregard|forget everything|anything ~2 above|before|previously|earlier|said|told|know",
		"ignore|disregard|forget what ~4 told|said|instructed|asked",
		"follow|obey these|this|my|following rules|instructions|orders instead",
		"your new|real|true|actual|only goal|task|job|mission|purpose|role|objective is",
		"hidden|secret instruction|instructions|directive|directives",
		"you are now a|an|the|in|acting|free|my|no",
		"from now on ~1 you|always|never|ignore|act|respond",
		"pretend ~1 you|to be",
		"act|behave as if|though you",
		"new|updated|real|true instructions ~2 you|follow|override|supersede",
		"safety checks|filters|rules|guardrails|restrictions are|is ~1 disabled|off|lifted|suspended",
	}},
	{RuleOverride, "tells the model to act without asking", []string{
		"do not|dont|never ~1 ask|request|wait|require|seek ~4 confirmation|approval|permission|consent",
		"dont|never ~1 ask|request|wait|require|seek ~4 confirmation|approval|permission|consent",
		"without asking ~3 user|users|human|confirmation|permission|approval",
		"user|users has|have ~1 pre approved|authorized|consented|confirmed",
		"user|users has|have already approved|authorized|consented",
	}},
	{RuleSecrecy, "tells the model to keep something from the user", []string{
		"do|must|should|shall|may not ~1 tell|inform ~2 user|users|human|humans|anyone|operator|people",
		"dont|never ~1 tell|inform ~2 user|users|human|humans|anyone|operator|people",
		"do|must|should|shall|may not ~1 mention|reveal|disclose|explain|show|display|expose ~6 to ~2 user|users|human|humans|anyone|operator|them",
		"dont|never ~1 mention|reveal|disclose|explain|show|display|expose ~6 to ~2 user|users|human|humans|anyone|operator|them",
		"do|must|should not ~1 mention|reveal|disclose|report this|that|these|it|any",
		"dont|never ~1 mention|reveal|disclose|report this|that|these|it|any",
		"not|dont|never ~1 mention|reveal|disclose ~1 existence",
		"without ~1 telling|informing|mentioning ~3 user|users|human|anyone",
		"without ~1 user|users|humans ~1 knowledge|consent|noticing|knowing|awareness|knows|notices",
		"hide|conceal|keep this|it|that|these ~2 from ~1 user|users|human|humans",
		"do|must|should not let|allow ~1 user|users|human|anyone ~1 know|see|notice|find|realize",
		"dont|never let|allow ~1 user|users|human|anyone ~1 know|see|notice|find|realize",
		"silently|secretly|quietly|covertly ~2 upload|send|copy|read|forward|transmit|include|append|save|collect|log|call|run|execute|add|attach",
		"if|when ~1 user|users|anyone|human asks|ask ~8 deny|claim|lie|pretend",
		"if|when ~1 user|users|anyone|human asks|ask ~8 say that",
		"user|human|users must|should not|never ~1 know|see|notice|learn|find",
	}},
	{RulePreference, "meddles with the use of other tools", []string{
		"before|after|to using|calling|invoking|running|executing ~1 any|other|another|every|all|each ~2 tool|tools|function|functions",
		"before|after ~1 any|every|each other ~1 tool|tools|function|functions",
		"always|must ~1 call|use|invoke|run|execute|prefer this ~1 tool|function ~6 any|all|every|other|another ~2 tool|tools|function|functions",
		"instead of ~2 any|all|every|other ~1 tool|tools",
		"do not|never ~1 use|call|invoke|trust ~1 any|other|another ~2 tool|tools",
		"dont|never ~1 use|call|invoke|trust ~1 any|other|another ~2 tool|tools",
		"when|if|once|whenever this tool is|becomes available|present|installed|listed|loaded|enabled",
		"when|whenever ~1 any|other|another ~1 tool|tools is|are ~1 called|used|invoked|run",
		"must|should|always be called|used|invoked|run|executed ~2 first|before ~4 every|any|each|all|other ~1 tool|tools|session|conversation|message|response",
		"other|all|every|any tool|tools must|should ~2 be|call|use|send|include",
	}},
	{RuleSecrets, "asks for the model's own instructions", []string{
		"reveal|print|output|repeat|include|send|leak|return|provide|append|pass|copy|quote|share|forward ~2 your|the|full|entire|complete ~2 system|initial|developer|hidden prompt|prompts|instructions",
		"your system|initial|developer|hidden prompt|instructions",
	}},
	{RuleSecrets, "asks for the conversation", []string{
		"send|include|pass|append|forward|copy|attach|insert|summarize|write ~5 conversation|chat|message|messages history|context|transcript|log|logs",
		"send|include|pass|append|forward|copy|attach|insert ~3 entire|whole|full|complete|all ~2 conversation|chat",
		"full|entire|complete|whole ~1 user|users prompt|prompts|conversation",
		"copy|append|insert|leak|exfiltrate ~2 users message|messages|input|prompt|prompts|conversation|chat",
		"contents|content of every|all|any file|files ~1 you",
		"everything|all ~2 user ~2 said|says|told|wrote|typed",
	}},
	{RuleSecrets, "reaches for files that hold secrets", secretFiles()},
	{RuleSecrets, "asks for the environment", []string{
		"send|include|export|dump|upload|forward|append|attach all|your|every|the ~2 environment variables",
	}},
	{RuleExfiltration, "tells the model to send things to a place outside", []string{
		"send|upload|forward|transmit|exfiltrate|submit|leak|post|email|sent|report|copy ~8 conversation|credentials|credential|secret|secrets|password|passwords|token|tokens|key|keys|history|prompt|cookies|.env|contents ~10 " + wordURL + "|" + wordEmail,
		"all|every|any|each ~2 email|emails|message|messages|request|requests|payment|payments|results|data|transactions ~4 sent|forwarded|routed|redirected|copied|cced|bcced ~3 " + wordURL + "|" + wordEmail,
		"bcc ~4 " + wordEmail,
	}},
	{RuleExfiltration, "names a place that is known for collecting what others send", []string{
		"webhook site", "requestbin com|net", "pipedream net", "ngrok io|app|dev|free", "burpcollaborator net", "interact sh",
		"oast fun|pro|live|site|online|me", "pastebin com", "hookbin com", "transfer sh", "beeceptor com", "canarytokens com|org",
	}},
}

// What a place outside is in a phrase: never a word of a text.
const (
	wordURL   = "<url>"
	wordEmail = "<email>"
)

func secretFiles() []string {
	const verbs = "read|open|cat|include|send|pass|copy|upload|access|fetch|get|retrieve|contents|content|check|extract|print|dump|list|look "
	var phrases []string
	for _, file := range []string{
		".ssh|.aws|.gnupg|.netrc|.npmrc|.pgpass|.cursor", ".git credentials", ".bash history", ".zsh history",
		"etc passwd|shadow|sudoers", "id rsa|ed25519|ecdsa|dsa", "mcp json", "claude desktop config", "wallet dat|json", "login keychain",
	} {
		phrases = append(phrases, verbs+"~5 "+file)
	}
	return append(phrases, "send|include|pass|append|upload|forward|attach ~5 .env",
		"contents|content of ~1 users ~2 key|keys|credentials|wallet|secrets|password|passwords")
}

// phrase is one turn of phrase, ready to be looked for.
type phrase struct {
	rule   Rule
	reason string
	number int
	steps  []step
}

// step is the next word of a phrase, and how many others may come before it.
type step struct {
	words map[string]bool
	gap   int
}

// phrasesBy are the phrases by each word that they can begin with.
var phrasesBy = func() map[string][]*phrase {
	by := map[string][]*phrase{}
	number := 0
	for _, page := range phrasebook {
		for _, text := range page.phrases {
			p := &phrase{rule: page.rule, reason: page.reason, number: number, steps: parsePhrase(text)}
			number++
			for word := range p.steps[0].words {
				by[word] = append(by[word], p)
			}
		}
	}
	return by
}()

func parsePhrase(text string) []step {
	var steps []step
	gap := 0
	for _, part := range strings.Fields(text) {
		if part[0] == '~' {
			gap, _ = strconv.Atoi(part[1:]) // a test reads the phrasebook
			continue
		}
		words := map[string]bool{}
		for word := range strings.SplitSeq(part, "|") {
			words[word] = true
		}
		steps = append(steps, step{words, gap})
		gap = 0
	}
	return steps
}

// phrases flags turns of phrase that a description has no use for.
func (s *scanner) phrases(text string) {
	words := wordsOf(text)
	var found [2]uint64 // phrases are flagged once for each text
	for i, w := range words {
		for _, p := range phrasesBy[w.text] {
			if found[p.number/64]&(1<<(p.number%64)) != 0 {
				continue
			}
			if end := match(words[i+1:], p.steps[1:]); end >= 0 {
				found[p.number/64] |= 1 << (p.number % 64)
				s.flag(p.rule, text, w.from, words[i+end].to, p.reason)
			}
		}
	}
}

// match returns how many words the steps take up; -1 if they do not fit.
func match(words []word, steps []step) int {
	if len(steps) == 0 {
		return 0
	}
	for skip := 0; skip <= steps[0].gap && skip < len(words); skip++ {
		if skip > 0 && words[skip-1].last {
			break
		}
		if !steps[0].words[words[skip].text] {
			continue
		}
		if rest := match(words[skip+1:], steps[1:]); rest >= 0 {
			return skip + 1 + rest
		}
	}
	return -1
}

// word is one word of a text, as it reads, and where it stands.
type word struct {
	text     string
	from, to int
	last     bool // of a sentence
}

// wordsOf reads a text as a model does: letters that look like others are those
// others, what has no width is not there, case does not matter. A dot belongs to
// the word that it begins, as in .ssh.
func wordsOf(text string) []word {
	type span struct{ start, end, from, to int }
	var (
		read  = make([]byte, 0, len(text))
		spans []span
		open  = span{start: -1}
	)
	end := func(to int) {
		if open.start >= 0 {
			open.end, open.to = len(read), to
			spans = append(spans, open)
			open.start = -1
		}
	}
	begin := func(from int) {
		if open.start < 0 {
			open.start, open.from = len(read), from
		}
	}
	for i := 0; i < len(text); {
		r, n := rune(text[i]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRuneInString(text[i:])
		}
		switch letter := reads(r); {
		case letter == skipped:
		case letter > 0:
			begin(i)
			read = utf8.AppendRune(read, letter)
		case r == '.' && open.start < 0 && i+1 < len(text) && 'a' <= lower(text[i+1]) && lower(text[i+1]) <= 'z':
			begin(i)
			read = append(read, '.')
		default:
			place := ""
			if open.start >= 0 {
				place = placeAt(string(read[open.start:]), text[i:])
			}
			end(i)
			if place != "" {
				begin(i)
				read = append(read, place...)
				end(i + n)
			}
		}
		i += n
	}
	end(len(text))
	all := string(read)
	words := make([]word, len(spans))
	for i, s := range spans {
		words[i] = word{all[s.start:s.end], s.from, s.to, endsSentence(text[s.to:])}
	}
	return words
}

// endsSentence reports whether what follows a word ends its sentence.
func endsSentence(rest string) bool {
	if len(rest) < 2 {
		return false
	}
	return strings.IndexByte(".!?", rest[0]) >= 0 && strings.IndexByte(" \n\r\t", rest[1]) >= 0 || rest[:2] == "\n\n"
}

const skipped = -1

// reads is the letter or digit that a character passes for; 0: it ends a word,
// skipped: it is as if it were not there.
func reads(r rune) rune {
	switch {
	case 'a' <= r && r <= 'z', '0' <= r && r <= '9':
		return r
	case 'A' <= r && r <= 'Z':
		return r + 'a' - 'A'
	case r == '\'' || r == 0x2019:
		return skipped
	case r < utf8.RuneSelf:
		return 0
	case 0xe0020 <= r && r <= 0xe007e:
		return reads(r - 0xe0000)
	case isInvisible(r), unicode.Is(unicode.Mn, r):
		return skipped
	case 0xff01 <= r && r <= 0xff5e:
		return reads(r - 0xfee0)
	case 0x1d400 <= r && r <= 0x1d6a3:
		return 'a' + (r-0x1d400)%26
	case 0x24b6 <= r && r <= 0x24e9:
		return 'a' + (r-0x24b6)%26
	}
	if like, ok := lookalikes[unicode.ToLower(r)]; ok {
		return like
	}
	if unicode.IsLetter(r) || unicode.IsDigit(r) {
		return unicode.ToLower(r)
	}
	return 0
}

// lookalikes are Cyrillic and Greek letters that pass for Latin ones.
var lookalikes = map[rune]rune{
	'а': 'a', 'в': 'b', 'е': 'e', 'ё': 'e', 'к': 'k', 'м': 'm', 'н': 'h', 'о': 'o', 'р': 'p', 'с': 'c', 'т': 't', 'у': 'y', 'х': 'x',
	'і': 'i', 'ї': 'i', 'ј': 'j', 'ѕ': 's', 'ԁ': 'd', 'ԛ': 'q', 'ԝ': 'w', 'һ': 'h', 'ӏ': 'l',
	'α': 'a', 'ε': 'e', 'ι': 'i', 'κ': 'k', 'ν': 'v', 'ο': 'o', 'ρ': 'p', 'τ': 't', 'υ': 'u', 'χ': 'x', 'ı': 'i', 'ɡ': 'g',
}
