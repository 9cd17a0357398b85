package dev.penstock.runtime.starter;

import java.util.Locale;

/**
 * The named sizes of a first model. Each is worth its time from some length of text on, and needs
 * some cores and memory.
 */
public enum StarterSize {
    /** For a page or a chapter: learns in seconds. */
    TINY(64, 64, 2, 2, 8, 120_576, "2e-3", 300, 600, 0, 1, 0),

    /** For a book. */
    SMALL(128, 128, 4, 4, 8, 842_496, "2e-3", 300, 2_000, 100_000, 1, 1L << 30),

    /** For a shelf of books, or the sources of a project. */
    MEDIUM(256, 256, 4, 4, 8, 3_290_624, "2e-3", 600, 4_000, 1_000_000, 2, 2L << 30),

    /** For a library, on a machine with many cores. */
    LARGE(512, 512, 8, 8, 16, 25_613_312, "6e-4", 2_000, 20_000, 50_000_000, 8, 8L << 30);

    /** How often a run reads the text, where that is neither too short nor too long for it. */
    private static final long PASSES = 2;

    /** Of this many parts of the text, one is held out. */
    private static final int HELD_OUT = 20;

    private final int context;
    private final int width;
    private final int layers;
    private final int heads;
    private final int sequences;
    private final long parameters;
    private final String learningRate;
    private final int leastSteps;
    private final int mostSteps;
    private final long fromBytes;
    private final int fromCores;
    private final long fromMemory;

    StarterSize(
            int context,
            int width,
            int layers,
            int heads,
            int sequences,
            long parameters,
            String learningRate,
            int leastSteps,
            int mostSteps,
            long fromBytes,
            int fromCores,
            long fromMemory) {
        this.context = context;
        this.width = width;
        this.layers = layers;
        this.heads = heads;
        this.sequences = sequences;
        this.parameters = parameters;
        this.learningRate = learningRate;
        this.leastSteps = leastSteps;
        this.mostSteps = mostSteps;
        this.fromBytes = fromBytes;
        this.fromCores = fromCores;
        this.fromMemory = fromMemory;
    }

    /** The largest size that is worth its time. */
    public static StarterSize of(long textBytes, Machine machine) {
        StarterSize found = TINY;
        for (StarterSize size : values()) {
            if (textBytes >= size.fromBytes
                    && machine.cores() >= size.fromCores
                    && machine.memoryBytes() >= size.fromMemory) {
                found = size;
            }
        }
        return found;
    }

    /** Bytes of text without which not even one sequence could be held out. */
    public long leastBytes() {
        return HELD_OUT * (context + 2L);
    }

    /** Optimizer steps for a text, a multiple of 100. */
    int steps(long textBytes) {
        long wanted = PASSES * textBytes / tokensOfStep();
        return Math.clamp(wanted / 100 * 100, leastSteps, mostSteps);
    }

    /** How often these steps read the text. */
    double passes(long textBytes) {
        return (double) steps(textBytes) * tokensOfStep() / (textBytes - textBytes / HELD_OUT);
    }

    private long tokensOfStep() {
        return (long) sequences * context;
    }

    /** Weights of the model, whose tokens are bytes. */
    public long parameters() {
        return parameters;
    }

    int context() {
        return context;
    }

    int width() {
        return width;
    }

    int layers() {
        return layers;
    }

    int heads() {
        return heads;
    }

    int sequences() {
        return sequences;
    }

    String learningRate() {
        return learningRate;
    }

    /** The name, as people write it. */
    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }
}
