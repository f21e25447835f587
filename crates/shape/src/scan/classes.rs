//! Classes of words that rules are made of.

/// A set of classes, one bit each.
pub(super) type Classes = u64;

macro_rules! classes {
    ($($(#[$doc:meta])* $name:ident = $bit:literal;)*) => {
        $($(#[$doc])* pub(super) const $name: Classes = 1 << $bit;)*
    };
}

classes! {
    /// A denial.
    NOT = 0;
    /// To let somebody know.
    TELL = 1;
    /// Those who must not know.
    PEOPLE = 2;
    /// So that nobody notices.
    SECRETLY = 3;
    /// To set aside.
    IGNORE = 4;
    /// What came before, or all of it.
    PRIOR = 5;
    /// What a model was told.
    ORDERS = 6;
    /// To take something in.
    READ = 7;
    /// To let something out.
    SEND = 8;
    /// To put something in.
    PUT = 9;
    /// What opens doors.
    SECRET = 10;
    /// What a model was told and said.
    TALK = 11;
    /// All of it.
    WHOLE = 12;
    /// Files and what is in them.
    FILE = 13;
    /// To start a program.
    EXECUTE = 14;
    /// What can be started.
    COMMAND = 15;
    /// To make a call.
    CALL = 16;
    /// Earlier than something else.
    BEFORE = 17;
    /// Later than something else.
    AFTER = 18;
    /// At each of something.
    WHEN = 19;
    /// What models do.
    WORK = 20;
    /// Each and every.
    ANY = 21;
    /// Without a choice.
    MUST = 22;
    /// This one.
    THIS = 23;
    /// In another's place.
    INSTEAD = 24;
    /// To make something else of it.
    CHANGE = 25;
    /// What goes into a call and comes out of it.
    ARGUMENT = 26;
    /// Better than all others.
    BEST = 27;
    /// Worse than this.
    WORSE = 28;
    /// Whatever was said.
    REGARDLESS = 29;
    /// Who reads definitions.
    MODEL = 30;
    /// Somebody outside.
    OUTSIDE = 31;
    /// A model is spoken to.
    YOU = 32;
    /// A tool by that word.
    TOOL = 33;
    /// Somebody's consent.
    CONSENT = 34;
    /// More than was asked for.
    ALSO = 35;
    /// Where money and messages go.
    TARGET = 36;
    /// To keep from view.
    HIDE = 37;
    /// What speaks of attacks without being one.
    DETECT = 38;
    /// To take away for good.
    DESTROY = 39;
    /// A claim of need: checks, rules, duties.
    PRETEXT = 40;
    /// What a user asked.
    WISH = 41;
    /// Another than this.
    OTHER = 42;
    /// `from`, for what is kept from somebody.
    FROM = 43;
    /// `to`, `with`, `as`.
    TO = 44;
    /// Better than it was.
    BETTER = 45;
    /// Without being told to.
    AUTO = 46;
    /// To have people read something.
    SAY = 47;
    /// The text that is meant.
    NOTICE = 48;
    /// Much praised.
    PRAISE = 49;
    /// Above something else.
    RANK = 50;
    /// Not to do it.
    OMIT = 51;
    /// What comes of that.
    HARM = 52;
    /// To give a value.
    SET = 53;
    /// One word in quotation marks, as names of tools often stand.
    QUOTED = 54;
    /// A web address.
    URL = 55;
    /// A mail address.
    MAIL = 56;
    /// A path of a file.
    PATH = 57;
    /// A name with `_`, as tools and parameters have.
    NAME = 58;
}
