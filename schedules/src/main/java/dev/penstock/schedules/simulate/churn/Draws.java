package dev.penstock.schedules.simulate.churn;

/** Numbers drawn by a seed: SplitMix64, the same on every machine. */
final class Draws {
    private static final double OF_53_BITS = 0x1.0p-53;

    private long state;

    Draws(long seed) {
        this.state = seed;
    }

    private long next() {
        state += 0x9e3779b97f4a7c15L;
        long bits = state;
        bits = (bits ^ bits >>> 30) * 0xbf58476d1ce4e5b9L;
        bits = (bits ^ bits >>> 27) * 0x94d049bb133111ebL;
        return bits ^ bits >>> 31;
    }

    /** A whole number from 0 on; the bias is below one in 2^31 for counts of peers. */
    int below(int bound) {
        return (int) Long.remainderUnsigned(next(), bound);
    }

    /** A waiting time of this mean. */
    double exponential(double mean) {
        return -mean * StrictMath.log(1 - (next() >>> 11) * OF_53_BITS);
    }
}
