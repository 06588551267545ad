//! The tokens of one text, as slices of a text that is reused.

/// Where a token begins and ends in its text, in bytes unless a function says otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    pub start: u32,
    pub end: u32,
}

/// The tokens of one text: slices of `text`, in the order of `spans`. Reused from text to text.
///
/// Where there are word n-grams the words stand joined by one space, so that a word n-gram is a longer slice; between
/// tokens that are single words anything may stand. At least [`Tokens::PADDING`] bytes follow the last token, so that a
/// reader may take whole machine words.
#[derive(Clone, Debug, Default)]
pub struct Tokens {
    pub text: Vec<u8>,
    pub spans: Vec<Span>,
    /// The text before its words were joined.
    unjoined: Vec<u8>,
}

/// Bytes that are copied at a time; a copy of fixed length needs no call. The pairs of 200,000 words took 3.6 ms with 16
/// bytes, 5.9 with 8 and 3.5 with 32.
const STEP: usize = 16;

impl Tokens {
    /// How many bytes of `text` follow the last token at least: readers take 16 bytes from the start of a token on.
    pub const PADDING: usize = 16;

    /// The bytes of token `i`.
    #[inline(always)]
    pub fn get(&self, i: usize) -> &[u8] {
        self.slice(self.spans[i])
    }

    /// The bytes of a token.
    #[inline(always)]
    fn slice(&self, span: Span) -> &[u8] {
        &self.text[span.start as usize..span.end as usize]
    }

    /// The number of tokens.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there are no tokens.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The bytes of each token, in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.spans.iter().map(|&span| self.slice(span))
    }

    /// Removes all tokens and their text.
    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.spans.clear();
    }

    /// Appends a word, with a space before it unless it is the first. `self.text` has the words as bytes, `self.spans` where
    /// each begins and ends in it.
    pub(super) fn push(&mut self, word: &[u8]) {
        if !self.spans.is_empty() {
            self.text.push(b' ');
        }
        let start = self.text.len() as u32;
        self.text.extend_from_slice(word);
        self.spans.push(Span { start, end: self.text.len() as u32 });
    }

    /// Keeps the tokens that `keep` holds for. It is called with the bytes of each token. `self.spans` has where tokens begin
    /// and end in `self.text`, in bytes.
    pub(super) fn retain(&mut self, keep: impl Fn(&[u8]) -> bool) {
        let text = &self.text;
        self.spans.retain(|span| keep(&text[span.start as usize..span.end as usize]));
    }

    /// Moves the tokens, which are words, together in the text, one space between them. `self.spans` has where each word
    /// begins and ends in `self.text`, in bytes; `self.unjoined` keeps the text as it was.
    pub(super) fn join(&mut self) {
        std::mem::swap(&mut self.text, &mut self.unjoined);
        // Words are copied in whole steps, and what is copied too much is written over.
        self.unjoined.extend_from_slice(&[0; STEP]);
        let word_size = |span: &Span| (span.end - span.start) as usize;
        let joined_size: usize = self.spans.iter().map(|span| word_size(span) + 1).sum();
        self.text.clear();
        self.text.resize(joined_size + STEP, 0);
        // Where the next word begins in the joined text.
        let mut at = 0;
        for span in &mut self.spans {
            let (old_start, size) = (span.start as usize, word_size(span));
            for offset in (0..size.max(1)).step_by(STEP) {
                let bytes = &self.unjoined[old_start + offset..][..STEP];
                self.text[at + offset..][..STEP].copy_from_slice(bytes);
            }
            let (start, end) = (at as u32, (at + size) as u32);
            *span = Span { start, end };
            self.text[at + size] = b' ';
            at += size + 1;
        }
        self.text.truncate(joined_size.saturating_sub(1));
    }

    /// Replaces the spans of words (or characters) with those of their n-grams, from `shortest` to `longest` words that
    /// follow each other, shorter ones first. `self.spans` has where each begins and ends in the text.
    pub(super) fn grams(&mut self, shortest: u8, longest: u8) {
        let n_words = self.spans.len();
        for n in usize::from(shortest.max(2))..=usize::from(longest).min(n_words) {
            // `n` is the number of words of an n-gram.
            let first_gram = self.spans.len(); // the index of the first n-gram of n words
            self.spans.extend_from_within(..n_words + 1 - n);
            let (words, grams) = self.spans.split_at_mut(first_gram);
            for (gram, last_word) in grams.iter_mut().zip(&words[n - 1..]) {
                gram.end = last_word.end;
            }
        }
        if shortest > 1 {
            self.spans.drain(..n_words);
        }
    }

    /// Appends [`Tokens::PADDING`] bytes to the text.
    pub(super) fn pad(&mut self) {
        self.text.extend_from_slice(&[0; Tokens::PADDING]);
    }
}
