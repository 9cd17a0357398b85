package dev.penstock.runtime.inference;

import dev.penstock.actors.spi.TensorPiece;
import dev.penstock.runtime.model.family.ModelConfig;
import dev.penstock.runtime.model.parameters.ParameterSource;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Random;
import java.util.function.BiConsumer;
import java.util.function.Function;

/**
 * GPT-2 as its paper has it: whole windows, doubles, loops. The truth that inference is held to.
 */
public final class PlainGpt {
    private static final double EPSILON = 1e-5;

    private final ModelConfig config;
    private final Map<String, float[]> weights = new HashMap<>();
    private BiConsumer<String, double[][]> dropout = (_, _) -> {};

    /**
     * @param read gives a parameter's elements by its name
     */
    public PlainGpt(ModelConfig config, Function<String, float[]> read) {
        this.config = config;
        config.parameters().forEach((name, shape) -> weights.put(name, read.apply(name)));
    }

    /** Large random values everywhere, so that a missing or misplaced parameter shows. */
    static PlainGpt random(ModelConfig config, long seed) {
        var random = new Random(seed);
        return new PlainGpt(
                config,
                name -> {
                    List<Integer> shape = Objects.requireNonNull(config.parameters().get(name));
                    float[] values = new float[shape.stream().reduce(1, (a, b) -> a * b)];
                    for (int i = 0; i < values.length; i++) {
                        values[i] = (float) (0.3 * random.nextGaussian());
                    }
                    return values;
                });
    }

    /** The same parameters for those who are tested. */
    ParameterSource source() {
        return (name, piece, destination) -> {
            float[] whole = weights.get(name);
            if (whole == null) {
                return false;
            }
            piece.walk(
                    (inWhole, inPiece, count) -> {
                        for (long i = 0; i < count; i++) {
                            destination.setAtIndex(
                                    ValueLayout.JAVA_FLOAT,
                                    inPiece + i,
                                    whole[(int) (inWhole + i)]);
                        }
                    });
            return true;
        };
    }

    /** Reads parameters of a source that has them whole. */
    public static PlainGpt of(ModelConfig config, ParameterSource source) {
        return new PlainGpt(
                config,
                name -> {
                    List<Integer> shape = Objects.requireNonNull(config.parameters().get(name));
                    long elements = shape.stream().mapToLong(n -> n).reduce(1, (a, b) -> a * b);
                    try (Arena arena = Arena.ofConfined()) {
                        var segment = arena.allocate(elements * Float.BYTES, 64);
                        var piece = TensorPiece.all(shape);
                        if (!source.fill(name, piece, segment)) {
                            throw new IllegalArgumentException("no " + name);
                        }
                        return segment.toArray(ValueLayout.JAVA_FLOAT);
                    }
                });
    }

    /**
     * Lets something drop out elements of the embeddings, and of what branches are about to add.
     *
     * @param in place, with the name of what computed it: {@code embeddings}, or a branch's last
     *     matrix
     */
    public void droppingOut(BiConsumer<String, double[][]> in) {
        dropout = in;
    }

    /** A parameter's elements, which may be changed. */
    public float[] weight(String name) {
        return of(name);
    }

    /** Logits of the token after each token of a window, which begins at position 0. */
    public double[][] logits(int[] window) {
        int d = config.shape().width();
        double[][] x = new double[window.length][d];
        for (int t = 0; t < window.length; t++) {
            for (int i = 0; i < d; i++) {
                x[t][i] = of("wte.weight")[window[t] * d + i] + of("wpe.weight")[t * d + i];
            }
        }
        dropout.accept("embeddings", x);
        for (int layer = 0; layer < config.shape().layers(); layer++) {
            String h = "h." + layer + ".";
            double[][] qkv = linear(norm(x, h + "ln_1"), h + "attn.c_attn", 3 * d);
            add(x, branch(attention(qkv), h + "attn.c_proj"));
            double[][] hidden = linear(norm(x, h + "ln_2"), h + "mlp.c_fc", 4 * d);
            for (double[] row : hidden) {
                for (int i = 0; i < row.length; i++) {
                    row[i] = gelu(row[i]);
                }
            }
            add(x, branch(hidden, h + "mlp.c_proj"));
        }
        double[][] last = norm(x, "ln_f");
        float[] head = of(config.shape().tied() ? "wte.weight" : "lm_head.weight");
        double[][] logits = new double[window.length][config.shape().vocabulary()];
        for (int t = 0; t < window.length; t++) {
            for (int v = 0; v < config.shape().vocabulary(); v++) {
                for (int i = 0; i < d; i++) {
                    logits[t][v] += last[t][i] * head[v * d + i];
                }
            }
        }
        return logits;
    }

    /** Minus the logarithm of the probability that the logits give a token. */
    public static double surprise(double[] logits, int token) {
        double sum = 0;
        for (double logit : logits) {
            sum += Math.exp(logit - logits[token]);
        }
        return Math.log(sum);
    }

    private float[] of(String name) {
        return Objects.requireNonNull(weights.get(name));
    }

    private double[][] norm(double[][] x, String name) {
        double[][] y = new double[x.length][];
        for (int t = 0; t < x.length; t++) {
            double mean = 0;
            double variance = 0;
            for (double value : x[t]) {
                mean += value / x[t].length;
            }
            for (double value : x[t]) {
                variance += (value - mean) * (value - mean) / x[t].length;
            }
            y[t] = new double[x[t].length];
            for (int i = 0; i < y[t].length; i++) {
                double normed = (x[t][i] - mean) / Math.sqrt(variance + EPSILON);
                y[t][i] = normed * of(name + ".weight")[i] + of(name + ".bias")[i];
            }
        }
        return y;
    }

    private double[][] linear(double[][] x, String name, int columns) {
        float[] weight = of(name + ".weight");
        double[][] y = new double[x.length][columns];
        for (int t = 0; t < x.length; t++) {
            for (int j = 0; j < columns; j++) {
                y[t][j] = of(name + ".bias")[j];
                for (int i = 0; i < x[t].length; i++) {
                    y[t][j] += x[t][i] * weight[i * columns + j];
                }
            }
        }
        return y;
    }

    private double[][] branch(double[][] x, String name) {
        double[][] y = linear(x, name, config.shape().width());
        dropout.accept(name + ".weight", y);
        return y;
    }

    private double[][] attention(double[][] qkv) {
        int d = config.shape().width();
        int size = d / config.shape().heads();
        double[][] y = new double[qkv.length][d];
        for (int t = 0; t < qkv.length; t++) {
            for (int head = 0; head < config.shape().heads(); head++) {
                double[] scores = new double[t + 1];
                double sum = 0;
                for (int s = 0; s <= t; s++) {
                    double dot = 0;
                    for (int i = head * size; i < (head + 1) * size; i++) {
                        dot += qkv[t][i] * qkv[s][d + i];
                    }
                    scores[s] = Math.exp(dot / Math.sqrt(size));
                    sum += scores[s];
                }
                for (int s = 0; s <= t; s++) {
                    for (int i = head * size; i < (head + 1) * size; i++) {
                        y[t][i] += scores[s] / sum * qkv[s][2 * d + i];
                    }
                }
            }
        }
        return y;
    }

    private static double gelu(double x) {
        return 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x * x * x)));
    }

    private static void add(double[][] x, double[][] y) {
        for (int t = 0; t < x.length; t++) {
            for (int i = 0; i < x[t].length; i++) {
                x[t][i] += y[t][i];
            }
        }
    }
}
