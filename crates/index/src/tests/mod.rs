mod buffered;
mod check;
mod hash;
mod postings;
