//! What words say of many labels: only the pairs of a word and a label that occur are looked at.

use super::texts::Texts;
use crate::error::{Error, demand};
use crate::threads;

/// Texts of a piece.
const PIECE: usize = 1 << 8;

/// Word w says `says[i]` of label `labels[i]`, i from `starts[w]` on, beyond what it says of all labels, `base[w]`.
#[derive(Clone, Copy, Debug)]
pub struct Index<'a> {
    starts: &'a [i64],
    labels: &'a [u32],
    says: &'a [f64],
    base: &'a [f64],
    n_labels: usize,
}

impl<'a> Index<'a> {
    pub fn new(
        starts: &'a [i64],
        labels: &'a [u32],
        says: &'a [f64],
        base: &'a [f64],
        n_labels: usize,
    ) -> Result<Self, Error> {
        let ends = starts.first() == Some(&0) && starts.last() == Some(&(labels.len() as i64));
        demand(ends && starts.is_sorted(), "starts must rise from 0 to the number of pairs")?;
        demand(
            says.len() == labels.len() && base.len() + 1 == starts.len(),
            "each pair must say something",
        )?;
        demand(
            labels.iter().all(|&label| (label as usize) < n_labels),
            "labels must be below their number",
        )?;
        Ok(Index { starts, labels, says, base, n_labels })
    }

    /// Σ value · what the word says + Σ value · `slopes`, `[text][label]`.
    pub fn scores(&self, texts: &Texts, slopes: &[f64], threads: usize) -> Result<Vec<f64>, Error> {
        let k = self.n_labels;
        demand(k > 0 && slopes.len() == k, "each label must have a slope")?;
        demand(texts.n_words() == self.base.len(), "the index must have all words")?;
        let mut out = vec![0.0; texts.len() * k];
        threads::try_pieces(threads, &mut out, PIECE * k, |i, out| {
            for (at, out) in out.chunks_exact_mut(k).enumerate() {
                let (mut base, mut length) = (0.0, 0.0);
                for (word, value) in texts.each(i * PIECE + at) {
                    let value = f64::from(value);
                    base += value * self.base[word];
                    length += value;
                    let pairs = self.starts[word] as usize..self.starts[word + 1] as usize;
                    let each = self.labels[pairs.clone()].iter().zip(&self.says[pairs]);
                    each.for_each(|(&label, says)| out[label as usize] += value * says);
                }
                out.iter_mut().zip(slopes).for_each(|(out, slope)| *out += length * slope + base);
            }
            Ok::<_, Error>(())
        })?;
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::super::texts::Bags;
    use super::*;

    #[test]
    fn pairs_add_to_what_is_said_of_all() {
        let bags = Bags::new(&[0, 2, 2, 3], &[0, 1, 1], 2).unwrap();
        let texts = Texts::new(bags, &[1.0, 2.0, 3.0]).unwrap();
        let index =
            Index::new(&[0, 1, 3], &[1, 0, 2], &[0.5, 0.25, 4.0], &[10.0, 20.0], 3).unwrap();
        let found = index.scores(&texts, &[1.0, 2.0, 3.0], 1).unwrap();
        assert_eq!(found, [53.5, 56.5, 67.0, 0.0, 0.0, 0.0, 63.75, 66.0, 81.0]);
        assert!(Index::new(&[0, 1], &[3], &[1.0], &[0.0], 3).is_err());
    }
}
