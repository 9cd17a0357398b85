package dev.penstock.runtime.evaluation;

/** Sums over the texts of a file, or of all files, in their order. Confined to one thread. */
final class Tally {
    /** Of all targets, natural logarithms. */
    double logLikelihood;

    /** Texts, pages or questions. */
    long texts;

    /** Targets. */
    long tokens;

    long words;
    long bytes;

    /** Texts of which all was guessed, or whose likeliest choice is the right one. */
    long right;

    /** Texts whose last token was guessed. */
    long rightByLastToken;

    /** Questions whose likeliest choice per character is the right one. */
    long rightByCharacter;

    /** Questions whose likeliest choice per byte is the right one. */
    long rightByByte;

    double share(long count) {
        return (double) count / texts;
    }

    /** Nats per token. */
    double loss() {
        return -logLikelihood / tokens;
    }

    double bitsPerByte() {
        return -logLikelihood / (bytes * Math.log(2));
    }
}
