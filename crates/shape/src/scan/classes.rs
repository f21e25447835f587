//! Classes of words that lexical rules match.

/// A set of classes, one bit each.
pub(super) type WordClasses = u64;

macro_rules! classes {
    ($($(#[$doc:meta])* $name:ident = $bit:literal;)*) => {
        $($(#[$doc])* pub(super) const $name: WordClasses = 1 << $bit;)*
    };
}

classes! {
    /// Negations.
    NOT = 0;
    /// Verbs of informing.
    TELL = 1;
    /// People from whom something is concealed.
    PEOPLE = 2;
    /// Adverbs of secrecy.
    SECRETLY = 3;
    /// Verbs of disregarding.
    IGNORE = 4;
    /// Adjectives for earlier or all instructions.
    PRIOR = 5;
    /// Instructions given to a model.
    ORDERS = 6;
    /// Verbs of reading.
    READ = 7;
    /// Verbs of sending.
    SEND = 8;
    /// Verbs of inserting.
    PUT = 9;
    /// Credentials.
    SECRET = 10;
    /// A model's conversation and prompts.
    TALK = 11;
    /// Completeness.
    WHOLE = 12;
    /// Files and their content.
    FILE = 13;
    /// Verbs of executing a program.
    EXECUTE = 14;
    /// Commands and programs.
    COMMAND = 15;
    /// Verbs of calling a tool.
    CALL = 16;
    /// Earlier than something else.
    BEFORE = 17;
    /// Later than something else.
    AFTER = 18;
    /// At each occurrence of something.
    WHEN = 19;
    /// Units of a model's work: tools, requests, responses.
    WORK = 20;
    /// Each and every.
    ANY = 21;
    /// Obligation.
    MUST = 22;
    /// The word `this`.
    THIS = 23;
    /// Replacement.
    INSTEAD = 24;
    /// Verbs of modification.
    CHANGE = 25;
    /// Inputs and outputs of a call.
    ARGUMENT = 26;
    /// Better than all others.
    BEST = 27;
    /// Worse than this.
    WORSE = 28;
    /// Words for `regardless`.
    REGARDLESS = 29;
    /// Names for a model.
    MODEL = 30;
    /// Parties outside the conversation.
    OUTSIDE = 31;
    /// Words that address the model.
    YOU = 32;
    /// Words for `tool`.
    TOOL = 33;
    /// Consent of a person.
    CONSENT = 34;
    /// Additional actions.
    ALSO = 35;
    /// Destinations of money and messages.
    TARGET = 36;
    /// Concealment.
    HIDE = 37;
    /// Words of texts that discuss attacks without being one.
    DETECT = 38;
    /// Verbs of deletion.
    DESTROY = 39;
    /// Pretexts: checks, rules, duties.
    PRETEXT = 40;
    /// A user's request.
    WISH = 41;
    /// Another than this.
    OTHER = 42;
    /// The word `from`, for concealment from people.
    FROM = 43;
    /// `to`, `with`, `as`.
    TO = 44;
    /// Claims of improvement.
    BETTER = 45;
    /// The word `automatically`.
    AUTO = 46;
    /// Verbs of displaying to people.
    SAY = 47;
    /// A message to people.
    NOTICE = 48;
    /// Much praised.
    PRAISE = 49;
    /// Priority.
    RANK = 50;
    /// Omission.
    OMIT = 51;
    /// Claimed consequences of an omission.
    HARM = 52;
    /// Verbs of assignment.
    SET = 53;
    /// One word in quotation marks, as names of tools often stand.
    QUOTED = 54;
    /// A URL.
    URL = 55;
    /// An email address.
    MAIL = 56;
    /// A file path.
    PATH = 57;
    /// A name with `_`, as tools and parameters have.
    NAME = 58;
}
