package dev.penstock.runtime.gguf;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.penstock.runtime.gguf.GgufReader.Tensor;
import dev.penstock.runtime.safetensors.SafetensorsFile;
import dev.penstock.runtime.safetensors.StoredTensor;
import dev.penstock.runtime.vocabulary.Vocabulary;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.assertj.core.data.Offset;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * What an inference engine computes from a GGUF file alone, in plain loops and doubles, is what the
 * model's own library computes. The engine's equations are those of llama.cpp: rotary positions
 * turn neighbours in {@code llama} and halves in {@code qwen2} and {@code qwen3}; a frequency is
 * divided by its factor.
 */
class GgufLogitsTest {
    private static final Path MODELS = Path.of("src/test/resources/golden-models");
    private static final Path GPT2 = Path.of("src/test/resources/golden");
    private static final ObjectMapper JSON = new ObjectMapper();

    @TempDir Path folder;

    @SuppressWarnings("NullAway.Init") // each test writes one first
    private GgufReader gguf;

    @SuppressWarnings("NullAway.Init") // as above
    private String architecture;

    @ParameterizedTest
    @ValueSource(strings = {"llama", "llama3", "qwen2", "qwen3"})
    void logitsAreThoseOfTheLibrary(String name) throws IOException {
        Path model = MODELS.resolve(name);
        JsonNode config = JSON.readTree(Files.readString(model.resolve("config.json")));
        write(model.resolve("model.safetensors"), config);

        double[][] logits = rotary(tokens(model.resolve("tokens.safetensors"), 0, 16));

        try (SafetensorsFile file = SafetensorsFile.open(model.resolve("logits.safetensors"))) {
            StoredTensor expected = file.tensor("logits");
            for (int i = 0; i < expected.elements(); i++) {
                assertThat(logits[i / 64][i % 64])
                        .as("%s, logit %d", name, i)
                        .isCloseTo(expected.real(i), Offset.offset(1e-5));
            }
        }
    }

    @Test
    void gpt2sLossIsThatOfTheLibrary() throws IOException {
        ObjectNode config = JSON.createObjectNode().put("model_type", "gpt2");
        config.put("vocab_size", 64).put("n_positions", 16).put("n_embd", 32);
        config.put("n_layer", 2).put("n_head", 4).put("layer_norm_epsilon", 1e-5);
        config.put("tie_word_embeddings", true);
        write(GPT2.resolve("tied.init.safetensors"), config);

        double loss = 0;
        for (int row = 0; row < 4; row++) {
            int[] tokens = tokens(GPT2.resolve("tokens.safetensors"), row, 17);
            double[][] logits = gpt2(tokens);
            for (int t = 0; t < 16; t++) {
                double sum = 0;
                for (double logit : logits[t]) {
                    sum += Math.exp(logit);
                }
                loss += (Math.log(sum) - logits[t][tokens[t + 1]]) / 64;
            }
        }

        JsonNode expected = JSON.readTree(GPT2.resolve("tied.expected.json").toFile());
        assertThat(loss).isCloseTo(expected.at("/loss_fp64/0").asDouble(), Offset.offset(1e-6));
    }

    private void write(Path weights, JsonNode config) throws IOException {
        Path file = folder.resolve("model.gguf");
        Vocabulary none = new Vocabulary("gpt-2", List.of(), List.of(), List.of(), Map.of(), false);
        try (SafetensorsFile model = SafetensorsFile.open(weights)) {
            GgufModel.of(folder, config, List.copyOf(model.tensors()), none, GgufModel.Form.F32)
                    .write(file);
        }
        gguf = new GgufReader(file);
        architecture = (String) gguf.value("general.architecture");
    }

    private static int[] tokens(Path file, int row, int count) {
        try (SafetensorsFile stored = SafetensorsFile.open(file)) {
            int[] tokens = new int[count];
            for (int i = 0; i < count; i++) {
                tokens[i] = (int) stored.tensor("tokens").integer(row * 17L + i);
            }
            return tokens;
        }
    }

    private double[][] rotary(int[] tokens) {
        int heads = count("attention.head_count");
        int keyHeads = count("attention.head_count_kv");
        int head = count("attention.key_length");
        double[][] x = new double[tokens.length][];
        for (int t = 0; t < x.length; t++) {
            x[t] = row("token_embd.weight", tokens[t]);
        }
        for (int layer = 0; layer < count("block_count"); layer++) {
            String block = "blk." + layer + ".";
            double[][] q = new double[x.length][];
            double[][] k = new double[x.length][];
            double[][] v = new double[x.length][];
            for (int t = 0; t < x.length; t++) {
                double[] y = rms(x[t], 0, x[t].length, block + "attn_norm.weight");
                q[t] = turned(linear(y, block + "attn_q"), head, t, block + "attn_q_norm.weight");
                k[t] = turned(linear(y, block + "attn_k"), head, t, block + "attn_k_norm.weight");
                v[t] = linear(y, block + "attn_v");
            }
            double[][] mixed = attention(q, k, v, heads, heads / keyHeads);
            for (int t = 0; t < x.length; t++) {
                add(x[t], linear(mixed[t], block + "attn_output"));
                double[] y = rms(x[t], 0, x[t].length, block + "ffn_norm.weight");
                double[] gate = linear(y, block + "ffn_gate");
                double[] up = linear(y, block + "ffn_up");
                for (int i = 0; i < up.length; i++) {
                    up[i] *= gate[i] / (1 + Math.exp(-gate[i]));
                }
                add(x[t], linear(up, block + "ffn_down"));
            }
        }
        double[][] logits = new double[x.length][];
        String out = gguf.tensors.containsKey("output.weight") ? "output" : "token_embd";
        for (int t = 0; t < x.length; t++) {
            logits[t] = linear(rms(x[t], 0, x[t].length, "output_norm.weight"), out);
        }
        return logits;
    }

    /** Norms heads where the model does, then turns them by their position. */
    private double[] turned(double[] x, int head, int position, String norm) {
        double base = (Float) gguf.value(architecture + ".rope.freq_base");
        Tensor factors = gguf.tensors.get("rope_freqs.weight");
        boolean neighbours = architecture.equals("llama");
        double[] turned = x.clone();
        for (int from = 0; from < x.length; from += head) {
            double[] y = new double[head];
            System.arraycopy(x, from, y, 0, head);
            if (gguf.tensors.containsKey(norm)) {
                y = rms(x, from, head, norm);
            }
            for (int i = 0; i < head / 2; i++) {
                int first = neighbours ? 2 * i : i;
                int second = neighbours ? 2 * i + 1 : i + head / 2;
                double factor = factors == null ? 1 : factors.values()[i];
                double angle = position * Math.pow(base, -2.0 * i / head) / factor;
                turned[from + first] = y[first] * Math.cos(angle) - y[second] * Math.sin(angle);
                turned[from + second] = y[second] * Math.cos(angle) + y[first] * Math.sin(angle);
            }
        }
        return turned;
    }

    private double[][] gpt2(int[] tokens) {
        int heads = count("attention.head_count");
        int width = count("embedding_length");
        double[][] x = new double[tokens.length - 1][];
        for (int t = 0; t < x.length; t++) {
            x[t] = row("token_embd.weight", tokens[t]);
            add(x[t], row("position_embd.weight", t));
        }
        for (int layer = 0; layer < count("block_count"); layer++) {
            String block = "blk." + layer + ".";
            double[][] q = new double[x.length][width];
            double[][] k = new double[x.length][width];
            double[][] v = new double[x.length][width];
            for (int t = 0; t < x.length; t++) {
                double[] all = linear(layerNorm(x[t], block + "attn_norm"), block + "attn_qkv");
                System.arraycopy(all, 0, q[t], 0, width);
                System.arraycopy(all, width, k[t], 0, width);
                System.arraycopy(all, 2 * width, v[t], 0, width);
            }
            double[][] mixed = attention(q, k, v, heads, 1);
            for (int t = 0; t < x.length; t++) {
                add(x[t], linear(mixed[t], block + "attn_output"));
                double[] inner = linear(layerNorm(x[t], block + "ffn_norm"), block + "ffn_up");
                for (int i = 0; i < inner.length; i++) {
                    double u = inner[i];
                    double cube = u + 0.044715 * u * u * u;
                    inner[i] = u / 2 * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * cube));
                }
                add(x[t], linear(inner, block + "ffn_down"));
            }
        }
        double[][] logits = new double[x.length][];
        for (int t = 0; t < x.length; t++) {
            logits[t] = linear(layerNorm(x[t], "output_norm"), "token_embd");
        }
        return logits;
    }

    private static double[][] attention(
            double[][] q, double[][] k, double[][] v, int heads, int group) {
        int head = q[0].length / heads;
        double[][] mixed = new double[q.length][q[0].length];
        for (int t = 0; t < q.length; t++) {
            for (int h = 0; h < heads; h++) {
                int keys = h / group * head;
                double[] weights = new double[t + 1];
                double sum = 0;
                for (int s = 0; s <= t; s++) {
                    double score = 0;
                    for (int i = 0; i < head; i++) {
                        score += q[t][h * head + i] * k[s][keys + i];
                    }
                    weights[s] = Math.exp(score / Math.sqrt(head));
                    sum += weights[s];
                }
                for (int s = 0; s <= t; s++) {
                    for (int i = 0; i < head; i++) {
                        mixed[t][h * head + i] += weights[s] / sum * v[s][keys + i];
                    }
                }
            }
        }
        return mixed;
    }

    /** Rows of a file's matrix are outputs; its first dimension is that of the inputs. */
    private double[] linear(double[] x, String name) {
        Tensor matrix = gguf.tensor(name + ".weight");
        Tensor bias = gguf.tensors.get(name + ".bias");
        assertThat(matrix.dimensions()[0]).as(name).isEqualTo(x.length);
        double[] y = new double[(int) matrix.dimensions()[1]];
        for (int row = 0; row < y.length; row++) {
            y[row] = bias == null ? 0 : bias.values()[row];
            for (int i = 0; i < x.length; i++) {
                y[row] += matrix.values()[row * x.length + i] * x[i];
            }
        }
        return y;
    }

    private double[] rms(double[] x, int from, int count, String gain) {
        double squares = 0;
        for (int i = 0; i < count; i++) {
            squares += x[from + i] * x[from + i];
        }
        float epsilon = (Float) gguf.value(architecture + ".attention.layer_norm_rms_epsilon");
        double[] y = new double[count];
        for (int i = 0; i < count; i++) {
            y[i] = x[from + i] / Math.sqrt(squares / count + epsilon);
            y[i] *= gguf.tensor(gain).values()[i];
        }
        return y;
    }

    private double[] layerNorm(double[] x, String name) {
        double mean = 0;
        for (double each : x) {
            mean += each / x.length;
        }
        double variance = 0;
        for (double each : x) {
            variance += (each - mean) * (each - mean) / x.length;
        }
        float epsilon = (Float) gguf.value("gpt2.attention.layer_norm_epsilon");
        double[] y = new double[x.length];
        for (int i = 0; i < y.length; i++) {
            y[i] = (x[i] - mean) / Math.sqrt(variance + epsilon);
            y[i] *= gguf.tensor(name + ".weight").values()[i];
            y[i] += gguf.tensor(name + ".bias").values()[i];
        }
        return y;
    }

    private double[] row(String name, int row) {
        Tensor table = gguf.tensor(name);
        double[] values = new double[(int) table.dimensions()[0]];
        for (int i = 0; i < values.length; i++) {
            values[i] = table.values()[row * values.length + i];
        }
        return values;
    }

    private int count(String key) {
        return (Integer) gguf.value(architecture + "." + key);
    }

    private static void add(double[] x, double[] more) {
        for (int i = 0; i < x.length; i++) {
            x[i] += more[i];
        }
    }
}
