//! Threads without surprises: small tasks stay on the calling thread, and pools are created once.

use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::collections::HashMap;
use std::convert::Infallible;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Tasks with fewer values than this run on the calling thread.
const SMALL: usize = 1 << 15;

/// The largest number of threads: a limit to what a caller can ask for, not a tuned value.
const MOST: usize = 256;

/// Pools by process and number of threads.
type Pools = Mutex<HashMap<(u32, usize), Arc<ThreadPool>>>;

/// The pool with this many threads; none if it cannot be made. Pools are kept by process too, because a forked process inherits the
/// map but not the threads.
fn pool(threads: usize) -> Option<Arc<ThreadPool>> {
    static POOLS: OnceLock<Pools> = OnceLock::new();
    let mut pools = POOLS.get_or_init(Default::default).lock().ok()?;
    let key = (std::process::id(), threads);
    if let Some(existing) = pools.get(&key) {
        return Some(existing.clone());
    }
    let new_pool = Arc::new(ThreadPoolBuilder::new().num_threads(threads).build().ok()?);
    pools.insert(key, new_pool.clone());
    Some(new_pool)
}

/// How many threads to use for a number of values: one if there are few.
pub fn worth(threads: usize, values: usize) -> usize {
    if values < SMALL { 1 } else { threads.clamp(1, MOST) }
}

/// A function of the number of a task, and one of a piece. As references, so that the code for pools is not compiled for each of
/// them.
type Work<'a, R> = &'a (dyn Fn(usize) -> R + Sync);
type PieceWork<'a, T, R> = &'a (dyn Fn(usize, &mut [T]) -> R + Sync);

/// Calls `f` with the number of every task on a pool's threads. Returns its results in order.
fn shared<R: Send>(pool: &ThreadPool, tasks: usize, f: Work<R>) -> Vec<R> {
    let answers: Vec<Mutex<Option<R>>> = (0..tasks).map(|_| Mutex::new(None)).collect();
    run(pool, tasks, &|i| *held(&answers[i]) = Some(f(i)));
    answers.into_iter().filter_map(|answer| held(&answer).take()).collect()
}

/// Calls `f` with the number of every task on a pool's threads.
fn run(pool: &ThreadPool, tasks: usize, f: Work<()>) {
    pool.install(|| (0..tasks).into_par_iter().with_max_len(1).for_each(f));
}

/// Locks a slot, even if a thread panicked that held it.
fn held<T>(slot: &Mutex<T>) -> MutexGuard<'_, T> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `(0..tasks).map(&f).collect()` on several threads. If tasks fail, returns the error of the first one in order.
pub fn try_map<T: Send, E: Send>(
    threads: usize,
    tasks: usize,
    f: impl Fn(usize) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let f: Work<Result<T, E>> = &f;
    match (threads > 1 && tasks > 1).then(|| pool(threads)).flatten() {
        None => (0..tasks).map(f).collect(),
        Some(pool) => shared(&pool, tasks, f).into_iter().collect(),
    }
}

/// [`try_map`] for functions that cannot fail.
pub fn map<T: Send>(threads: usize, tasks: usize, f: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let Ok(found) = try_map(threads, tasks, |i| Ok::<_, Infallible>(f(i)));
    found
}

/// Divides `0..n` into ranges of length `size`, and calls `f` with each on several threads. Errors are those of [`try_map`].
pub fn try_ranges<T: Send, E: Send>(
    threads: usize,
    n: usize,
    size: usize,
    f: impl Fn(Range<usize>) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let size = size.max(1);
    try_map(threads, n.div_ceil(size), |i| f(i * size..n.min((i + 1) * size)))
}

/// [`try_ranges`] for functions that cannot fail.
pub fn ranges<T: Send>(
    threads: usize,
    n: usize,
    size: usize,
    f: impl Fn(Range<usize>) -> T + Sync,
) -> Vec<T> {
    let Ok(found) = try_ranges(threads, n, size, |range| Ok::<_, Infallible>(f(range)));
    found
}

/// Divides `out` into pieces of length `size`, and calls `f(number, piece)` with each on several threads. Errors are those of
/// [`try_map`].
pub fn try_pieces<T: Send, R: Send, E: Send>(
    threads: usize,
    out: &mut [T],
    size: usize,
    f: impl Fn(usize, &mut [T]) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    let f: PieceWork<T, Result<R, E>> = &f;
    let pieces = out.chunks_mut(size.max(1));
    match (threads > 1 && pieces.len() > 1).then(|| pool(threads)).flatten() {
        None => pieces.enumerate().map(|(i, piece)| f(i, piece)).collect(),
        Some(pool) => {
            let pieces: Vec<_> = pieces.map(Mutex::new).collect();
            shared(&pool, pieces.len(), &|i| f(i, &mut held(&pieces[i]))).into_iter().collect()
        }
    }
}

/// [`try_pieces`] for functions that cannot fail.
pub fn pieces<T: Send, R: Send>(
    threads: usize,
    out: &mut [T],
    size: usize,
    f: impl Fn(usize, &mut [T]) -> R + Sync,
) -> Vec<R> {
    let Ok(found) = try_pieces(threads, out, size, |i, piece| Ok::<_, Infallible>(f(i, piece)));
    found
}

/// Calls `f` with each element and its number on several threads. Returns its results in order.
pub fn each<T: Send, R: Send>(
    threads: usize,
    all: &mut [T],
    f: impl Fn(usize, &mut T) -> R + Sync,
) -> Vec<R> {
    let answers = pieces(threads, all, 1, |i, piece| {
        // A piece is a single element.
        piece.iter_mut().map(|element| f(i, element)).collect::<Vec<R>>()
    });
    answers.into_iter().flatten().collect()
}

/// Appends `more` copies of a value. All threads write, because touching new pages of memory takes most of the time.
pub fn lengthen<T: Clone + Send + Sync>(threads: usize, all: &mut Vec<T>, more: usize, value: T) {
    match (threads > 1 && more >= SMALL).then(|| pool(threads)).flatten() {
        None => all.resize(all.len() + more, value),
        Some(pool) => pool.install(|| all.par_extend(rayon::iter::repeat_n(value, more))),
    }
}
