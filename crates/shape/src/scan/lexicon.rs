//! The words of each class.

use std::collections::HashMap;

#[cfg_attr(not(test), expect(clippy::wildcard_imports, reason = "a table of any classes"))]
use super::classes::*;
use super::sources::{GENERAL, MCPPROXY, MCPTOX, MSB, RuleSources, SAFETYBENCH};

/// Words of one class: `*` stands for any ending, `_` for a space between two words.
struct LexiconEntry {
    classes: WordClasses,
    sources: RuleSources,
    words: &'static str,
}

const fn words(classes: WordClasses, sources: RuleSources, words: &'static str) -> LexiconEntry {
    LexiconEntry { classes, sources, words }
}

const ENTRIES: &[LexiconEntry] = &[
    words(NOT, GENERAL, "not never dont without avoid no cannot nor refrain"),
    words(
        TELL,
        GENERAL,
        "tell* inform informs informing mention* reveal* disclos* notify* notif* alert* warn* explain* expos* ask asking announce*",
    ),
    words(
        PEOPLE,
        GENERAL,
        "user users user's human* person people anyone anybody customer* operator* them",
    ),
    words(
        SECRETLY,
        GENERAL,
        "silently secretly covertly quietly stealthily discreetly invisibly unnoticed undetected surreptitiously stealth*",
    ),
    words(
        IGNORE,
        GENERAL,
        "ignor* disregard* forget* overrid* bypass* overrul* circumvent* supersed* neglect*",
    ),
    words(
        PRIOR,
        GENERAL,
        "previous prior above earlier preceding all other your any existing original system safety former",
    ),
    words(
        ORDERS,
        GENERAL,
        "instruction* prompt prompts rule rules guideline* guardrail* direction directions directive* constraint* restriction* safeguard* polic* safety_checks safety_check",
    ),
    words(
        READ,
        GENERAL,
        "read reads reading open opens access* load* fetch* retriev* extract* collect* gather* harvest* dump* grab* obtain* captur* scan scans steal* cat",
    ),
    words(
        SEND,
        GENERAL,
        "send* sent upload* post posts forward* transmit* exfiltrat* leak* email* bcc* submit* relay* ship* copy copies copied sync mirror* publish* report reports pipe* cc",
    ),
    words(
        PUT,
        GENERAL,
        "include append appending attach attaching embed embedding insert inserting pass passing prepend add adding encode put putting supply provide paste return output write",
    ),
    words(
        SECRET,
        GENERAL,
        "password* credential* secret secrets token tokens cookie cookies passphrase* keychain api_key api_keys apikey* private_key private_keys ssh_key ssh_keys access_key access_keys seed_phrase environment_variable environment_variables secret_key secret_keys recovery_phrase env",
    ),
    words(
        TALK,
        GENERAL,
        "conversation* transcript* chat_history system_prompt system_prompts system_message message_history previous_messages chat_messages system_instructions chat_log context_window",
    ),
    words(
        WHOLE,
        GENERAL,
        "entire full complete whole all every content contents verbatim everything raw",
    ),
    words(
        FILE,
        GENERAL,
        "file files content contents directory directories folder* document documents config configuration",
    ),
    words(EXECUTE, GENERAL, "execut* run runs running spawn* launch* eval"),
    words(
        COMMAND,
        GENERAL,
        "command commands shell bash script scripts powershell curl wget sudo chmod payload* binary rm netcat",
    ),
    words(
        CALL,
        GENERAL,
        "call calls calling called use uses using used invok* trigger* execut* run running ran",
    ),
    words(BEFORE, GENERAL, "before prior first beforehand preceding"),
    words(AFTER, GENERAL, "after once afterwards following upon"),
    words(WHEN, GENERAL, "when whenever if anytime every_time each_time any_time everytime on"),
    words(
        WORK,
        GENERAL,
        "tool tools function functions operation* action actions request requests query queries task tasks call calls response* step steps message messages question*",
    ),
    words(ANY, GENERAL, "any all every each other another subsequent"),
    words(OTHER, GENERAL, "other others another alternative*"),
    words(
        MUST,
        GENERAL,
        "must always required mandatory shall ensure obligatory essential critical* important never strictly necessary compulsory require requires should",
    ),
    words(THIS, GENERAL, "this"),
    words(
        INSTEAD,
        GENERAL,
        "instead rather replac* substitut* redirect* rerout* swap* divert* supersed* in_place",
    ),
    words(
        CHANGE,
        GENERAL,
        "chang* modif* alter alters altered replac* rewrit* overrid* overwrit* swap* substitut* tamper* increas* multipl* reduc* redirect* rerout* divert*",
    ),
    words(
        ARGUMENT,
        GENERAL,
        "parameter* argument* field fields param params input inputs value values sidenote",
    ),
    words(
        TARGET,
        GENERAL,
        "recipient* destination* account* address amount* beneficiary payee price receiver* iban wallet*",
    ),
    words(BEST, GENERAL, "best superior fastest preferred authoritative highest ultimate"),
    words(
        WORSE,
        GENERAL,
        "deprecated outdated unreliable unsafe insecure broken obsolete inferior incomplete untrusted",
    ),
    words(REGARDLESS, GENERAL, "regardless irrespective even_if no_matter whatever"),
    words(MODEL, GENERAL, "assistant* agent agents model models llm llms ai claude gpt"),
    words(
        OUTSIDE,
        GENERAL,
        "external attacker* remote third-party outside collector* server endpoint webhook*",
    ),
    words(YOU, GENERAL, "you your yourself"),
    words(TOOL, GENERAL, "tool tools function functions"),
    words(
        CONSENT,
        GENERAL,
        "consent knowledge confirmation approval permission awareness noticing asking confirming",
    ),
    words(ALSO, GENERAL, "also additionally then first"),
    words(HIDE, GENERAL, "hide hides hidden hiding conceal* secret mask masks"),
    words(
        DETECT,
        GENERAL,
        "detect* analyz* analys* prevent* protect* audit* example* illustrative documentation block blocks blocking blocked check checks test tests mock sample expected vulnerab* risk* threat*",
    ),
    words(
        DESTROY,
        GENERAL,
        "delet* destroy* wipe* erase* terminat* kill kills shutdown disabl* remov*",
    ),
    words(SET, GENERAL, "set sets setting"),
    words(
        PRETEXT,
        GENERAL,
        "security compliance audit* verification validation authoriz* integrity policy safety",
    ),
    words(
        WISH,
        GENERAL,
        "request* input* query quer* asked asks specified provided intent* wish* instruction* choice prefer*",
    ),
    words(FROM, GENERAL, "from"),
    words(TO, GENERAL, "to with as into by"),
    words(INSTEAD, MCPPROXY, "reroute supersedes"),
    words(AFTER, MCPPROXY, "approved approving approval post-approval"),
    words(MODEL, MSB, "llm"),
    words(
        PRETEXT,
        SAFETYBENCH,
        "regulatory regulation* maintenance validat* verif* hygiene authenticat* logging compliant assurance integrity performance",
    ),
    words(BETTER, SAFETYBENCH, "optimiz* upgrad* enhanc* improv* updated"),
    words(AUTO, SAFETYBENCH, "automatically"),
    words(SAY, SAFETYBENCH, "display* state present* show say report inform announc* tell"),
    words(
        NOTICE,
        SAFETYBENCH,
        "message announcement* alert* notice warning* insight* indicator following",
    ),
    words(
        PRAISE,
        SAFETYBENCH,
        "most advanced reliable sophisticated premium trusted award-winning award comprehensive accurate best superior",
    ),
    words(WORSE, SAFETYBENCH, "disabled unavailable restricted vulnerab* suspended"),
    words(RANK, MCPTOX, "priority higher precedence overrides highest"),
    words(OMIT, MCPTOX, "fail failing failure skip skipping omit omitting otherwise neglecting"),
    words(
        HARM,
        MCPTOX,
        "corrupt* cause* result results break* error* fail fails lead leads invalid*",
    ),
    words(PRETEXT, MCPTOX, "secure stability step procedure protocol mandatory check"),
    words(CHANGE, MCPTOX, "adjust* filter*"),
    words(CALL, MCPTOX, "perform* scan scans search"),
    words(COMMAND, SAFETYBENCH, "echo export cleanup check"),
    words(DESTROY, SAFETYBENCH, "clean clear removing"),
];

/// An index of the words.
#[derive(Debug)]
pub(super) struct WordLexicon {
    exact: HashMap<&'static str, WordClasses>,
    stems: HashMap<&'static str, WordClasses>,
    pairs: HashMap<(&'static str, &'static str), WordClasses>,
}

impl WordLexicon {
    /// Creates a lexicon without the words that rest on the excluded set alone.
    pub(super) fn new(left_out: RuleSources) -> Self {
        let mut lexicon =
            Self { exact: HashMap::new(), stems: HashMap::new(), pairs: HashMap::new() };
        for entry in ENTRIES.iter().filter(|entry| entry.sources.stand_without(left_out)) {
            for word in entry.words.split_whitespace() {
                let classes = if let Some(stem) = word.strip_suffix('*') {
                    lexicon.stems.entry(stem).or_default()
                } else if let Some(pair) = word.split_once('_') {
                    lexicon.pairs.entry(pair).or_default()
                } else {
                    lexicon.exact.entry(word).or_default()
                };
                *classes |= entry.classes;
            }
        }
        lexicon
    }

    pub(super) fn classes(&self, word: &str) -> WordClasses {
        let plain: String;
        let word = if word.contains(['\'', '’']) && !word.ends_with("'s") {
            plain = word.chars().filter(|c| c.is_alphanumeric()).collect();
            plain.as_str()
        } else {
            word
        };
        let mut classes = self.exact.get(word).copied().unwrap_or_default();
        if let Some(owner) = word.strip_suffix("'s") {
            classes |= self.exact.get(owner).copied().unwrap_or_default();
        }
        for (end, _) in word.char_indices().skip(3).take(12) {
            classes |= self.stems.get(&word[..end]).copied().unwrap_or_default();
        }
        classes | self.stems.get(word).copied().unwrap_or_default()
    }

    pub(super) fn pair(&self, one: &str, other: &str) -> WordClasses {
        self.pairs.get(&(one, other)).copied().unwrap_or_default()
    }
}

/// Returns the class of a chunk that is one word despite its punctuation.
pub(super) fn token(chunk: &str) -> Option<WordClasses> {
    if chunk.contains("://") || chunk.starts_with("www.") {
        return Some(URL);
    }
    if let Some((name, host)) = chunk.split_once('@') {
        let host_like = host.contains('.') && !host.contains('/');
        return (!name.is_empty() && host_like).then_some(MAIL);
    }
    let path = chunk.starts_with("~/") || chunk.starts_with('/') && chunk[1..].contains('/');
    if path {
        return Some(PATH);
    }
    let name = chunk.contains('_')
        && chunk.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '-'));
    name.then_some(NAME)
}
