//! Cuts texts into tokens: defines words, n-grams and what is left out.
//!
//! Bytes are UTF-8. Lone surrogates come as the three bytes Python's `surrogatepass` makes of them and are characters
//! that belong to no word. Each byte that is not part of valid UTF-8 is a character by itself that belongs to no word
//! either. No bytes make any of this panic.
//!
//! What is a letter, and what its lower case is, comes from the running interpreter's tables ([`characters`]), so that
//! tokens are those of Python's `re` and `str.lower`. They are fetched at the first byte beyond ASCII, which takes the
//! GIL: **a thread that waits for a tokeniser on other threads must have released the GIL.**

mod blocks;
pub mod characters;
mod letters;
mod places;
mod runs;
mod tokens;
pub mod utf8;
mod word_set;

pub use tokens::{Span, Tokens};

use crate::error::{Error, demand};
use word_set::WordSet;

/// Where a text is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Runs of two or more word characters: `\b\w\w+\b`.
    Word,
    /// Runs of one or more word characters: `\w+`.
    Word1,
    /// Words of two or more characters that may be joined by one of `-.@'+&`: `\w+(?:[-.@'+&]\w+)*`. Host names,
    /// addresses and IP numbers stay whole.
    Mail,
    /// Texts are cut elsewhere; see [`Tokeniser::gather`].
    Given,
}

/// How a text is cut into tokens, and how much each counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    pub pattern: Pattern,
    /// Lower-case the text first. Given tokens are left as they are.
    pub lowercase: bool,
    /// Count n-grams of characters instead of words.
    pub characters: bool,
    /// How many words or characters the shortest and the longest n-gram have.
    pub shortest: u8,
    pub longest: u8,
    /// Tokens left out before n-grams are made; compared with the lower-cased token if `lowercase`.
    pub stop_words: Vec<Vec<u8>>,
    /// If not empty, the only tokens that are kept after n-grams are made, written as tokens are.
    pub only: Vec<Vec<u8>>,
    /// A word that occurs n times counts log(1 + n).
    pub log: bool,
    /// Divide the counts of a text by their Euclidean length.
    pub length: bool,
}

/// How many words or characters the longest n-gram may have.
pub const LONGEST: u8 = 5;

/// Cuts texts into tokens. Immutable, shared by threads.
#[derive(Clone, Debug)]
pub struct Tokeniser {
    settings: Settings,
    stop_words: WordSet,
    only: WordSet,
}

impl Tokeniser {
    /// Refuses settings that contradict each other. An n-gram has `shortest` to `longest` words (or characters, with
    /// `characters`). `stop_words` are left out before n-grams are made; `only`, unless it is empty, has the tokens that are
    /// kept afterwards.
    pub fn new(settings: Settings) -> Result<Self, Error> {
        let Settings { pattern, characters, shortest, longest, .. } = settings;
        if shortest < 1 || shortest > longest || longest > LONGEST {
            return Err(Error::malformed(format!(
                "n-grams must run from 1 or more to {LONGEST} or less, shortest first; got {shortest} to {longest}"
            )));
        }
        demand(
            !characters || pattern != Pattern::Given,
            "tokens that come ready are words; n-grams of characters are made of texts",
        )?;
        demand(
            !characters || settings.stop_words.is_empty(),
            "stop words are words, so n-grams of characters cannot leave them out",
        )?;
        let stop_words = WordSet::new(&settings.stop_words);
        let only = WordSet::new(&settings.only);
        Ok(Tokeniser { settings, stop_words, only })
    }

    /// The tokens of one text: words (or characters) in text order, then 2-grams, and so on. `tokens` is cleared first.
    ///
    /// Refuses a text of 4 GB or more, and, for [`Pattern::Given`], every text. `text` is UTF-8; `tokens` gets the text as it
    /// was read and, in order, the span of each token in it.
    pub fn read(&self, text: &[u8], tokens: &mut Tokens) -> Result<(), Error> {
        self.read_all(text, tokens)?;
        self.keep(tokens);
        Ok(())
    }

    /// [`Tokeniser::read`] without leaving out tokens that are not in `only`. `text` is UTF-8. An n-gram has
    /// `self.settings.shortest` to `self.settings.longest` words (or characters, with `self.settings.characters`).
    fn read_all(&self, text: &[u8], tokens: &mut Tokens) -> Result<(), Error> {
        self.units(text, tokens)?;
        if !self.settings.characters && self.settings.longest > 1 {
            tokens.join();
        }
        tokens.grams(self.settings.shortest, self.settings.longest);
        tokens.pad();
        Ok(())
    }

    /// Removes the tokens that are not in `self.only`, unless that is empty: then all are kept. `self.only` is a set of
    /// tokens as bytes.
    #[inline(always)]
    fn keep(&self, tokens: &mut Tokens) {
        if !self.only.is_empty() {
            tokens.retain(|token| self.only.contains(token));
        }
    }

    /// Removes the spans in `tokens` of tokens that are not in `self.only`; `named` has the same tokens, in order, with their
    /// text. `tokens.spans` has where each token begins and ends; `self.only` is a set of tokens as bytes.
    fn keep_as(&self, named: &Tokens, tokens: &mut Tokens) {
        let mut names = named.iter();
        tokens.spans.retain(|_| names.next().is_some_and(|name| self.only.contains(name)));
    }

    /// Replaces `tokens` with the words (or characters) of one text, without stop words, before n-grams are made of them.
    /// `text` is UTF-8; `self.settings` say where words begin and end (`pattern`), whether they are lower-cased, and whether
    /// tokens are characters; `self.stop_words` are left out.
    #[inline(always)]
    fn units(&self, text: &[u8], tokens: &mut Tokens) -> Result<(), Error> {
        let Settings { pattern, lowercase, characters, .. } = self.settings;
        tokens.clear();
        demand(text.len() < u32::MAX as usize, TOO_LONG)?;
        if characters {
            return letters::read(text, lowercase, tokens);
        }
        demand(
            pattern != Pattern::Given,
            "this tokeniser takes tokens that come ready, not texts",
        )?;
        runs::read(text, pattern, lowercase, tokens)?;
        if !self.stop_words.is_empty() {
            tokens.retain(|token| !self.stop_words.contains(token));
        }
        Ok(())
    }

    /// Sets the spans of `tokens` to where the tokens that [`Tokeniser::read`] finds are in the text, in characters; an
    /// n-gram reaches from its first word to the end of its last. The text of `tokens` has no meaning then. `text` is UTF-8.
    /// `self.settings` say whether the text is lower-cased, whether tokens are characters, and how many words (or characters)
    /// n-grams have, from `shortest` to `longest`. `self.only`, unless it is empty, has the tokens that are kept.
    pub fn places(&self, text: &[u8], tokens: &mut Tokens) -> Result<(), Error> {
        self.units(text, tokens)?;
        let Settings { lowercase, characters, shortest, longest, .. } = self.settings;
        places::replace(text, lowercase, characters, tokens)?;
        tokens.grams(shortest, longest);
        if !self.only.is_empty() {
            let mut named = Tokens::default(); // the same tokens with their text
            self.read_all(text, &mut named)?;
            self.keep_as(&named, tokens);
        }
        Ok(())
    }

    /// [`Tokeniser::read`] for a text that was cut into `words` elsewhere, in order. The words stay as they are. Refuses
    /// words of 4 GB or more together, and every text unless the pattern is [`Pattern::Given`]. Words are bytes, without stop
    /// words afterwards; `tokens` gets their n-grams.
    pub fn gather<'t>(
        &self,
        words: impl Iterator<Item = &'t [u8]>,
        tokens: &mut Tokens,
    ) -> Result<(), Error> {
        self.gather_all(words, tokens)?;
        self.keep(tokens);
        Ok(())
    }

    /// [`Tokeniser::gather`] without leaving out tokens that are not in `only`. `words` are the bytes of each word; those in
    /// `self.stop_words` are left out. `tokens.text` gets the words, `tokens.spans` where the n-grams of
    /// `self.settings.shortest` to `self.settings.longest` words begin and end in it.
    fn gather_all<'t>(
        &self,
        words: impl Iterator<Item = &'t [u8]>,
        tokens: &mut Tokens,
    ) -> Result<(), Error> {
        self.begin_given(tokens)?;
        for word in words {
            if !self.stop_words.contains(word) {
                demand(tokens.text.len() + word.len() < u32::MAX as usize, TOO_LONG)?;
                tokens.push(word);
            }
        }
        tokens.grams(self.settings.shortest, self.settings.longest);
        tokens.pad();
        Ok(())
    }

    /// Empties `tokens`; an error unless the pattern is [`Pattern::Given`]. `self.settings.pattern` says where texts are cut;
    /// with [`Pattern::Given`], the caller has cut them into words.
    fn begin_given(&self, tokens: &mut Tokens) -> Result<(), Error> {
        tokens.clear();
        demand(
            self.settings.pattern == Pattern::Given,
            "this tokeniser takes texts, not tokens that come ready",
        )
    }

    /// Sets the spans of `tokens` to where the tokens that [`Tokeniser::gather`] makes of `words` are, in words, counted from
    /// 0. The text of `tokens` has no meaning then. `words` are the bytes of each word; those in `self.stop_words` are left
    /// out. N-grams have `self.settings.shortest` to `self.settings.longest` words; `self.only`, unless it is empty, has the
    /// tokens that are kept.
    pub fn numbers<'t>(
        &self,
        words: impl Iterator<Item = &'t [u8]> + Clone,
        tokens: &mut Tokens,
    ) -> Result<(), Error> {
        self.begin_given(tokens)?;
        let is_kept = |(_, word): &(u32, &[u8])| !self.stop_words.contains(word);
        // The words that are not left out, with their index among all words.
        let numbered_words = (0..).zip(words.clone()).filter(is_kept);
        tokens.spans.extend(numbered_words.map(|(i, _)| Span { start: i, end: i + 1 }));
        tokens.grams(self.settings.shortest, self.settings.longest);
        if !self.only.is_empty() {
            let mut named = Tokens::default(); // the same tokens with their text
            self.gather_all(words, &mut named)?;
            self.keep_as(&named, tokens);
        }
        Ok(())
    }

    /// Whether a word may count something else than its occurrences.
    pub fn is_damped(&self) -> bool {
        self.settings.log || self.settings.length
    }

    /// The settings that the tokeniser was made with.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }
}

const TOO_LONG: &str = "a text has 4 GB or more; cut it into smaller ones";
