mod hash;
mod postings;
