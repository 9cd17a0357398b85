package dev.penstock.runtime.evaluation;

import static java.util.Objects.requireNonNull;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import com.fasterxml.jackson.databind.json.JsonMapper;
import dev.penstock.runtime.tokenizer.Tokenizer;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Figures of 200 texts beside those of a second implementation, which is written as the protocols'
 * sources are: padded windows with masks, lists that are cut. Both have the same model, that gives
 * each token a likelihood by what is before it in its window.
 */
class ProtocolsTest {
    private static final int CONTEXT = 24;
    private static final JsonMapper JSON = JsonMapper.builder().build();
    private static final Tokenizer BYTES = Tokenizer.named("bytes");

    @TempDir Path folder;

    private final List<String> texts = texts();

    /** One word, two, the last word twice, longer than the context, blanks and no line break. */
    private static List<String> texts() {
        List<String> texts =
                new ArrayList<>(
                        List.of(
                                "word",
                                "two words",
                                "the end of the end",
                                "no break at the end",
                                "a break at the end\n",
                                "blanks  twice  and at the end ",
                                "a very long text that has more tokens than the model has places",
                                "ends on one endlessandmorethanthecontextcouldeverhold",
                                "caf\u00e9 na\u00efve \u65e5\u672c \ud83d\ude00 end",
                                " = Title = \n \n a @-@ b ' s ( c ) \" d \" , N . "));
        Random random = new Random(3);
        String[] words = {
            "a", "the", "end", "of", "(", ")", ",", ".", "@-@", "'s", "N", "\u00b0", "="
        };
        while (texts.size() < 200) {
            StringBuilder text = new StringBuilder();
            int count = 2 + random.nextInt(30);
            for (int i = 0; i < count; i++) {
                text.append(i == 0 ? "" : random.nextInt(9) == 0 ? "\n" : " ")
                        .append(words[random.nextInt(words.length)]);
            }
            texts.add(text + (random.nextBoolean() ? "\n" : ""));
        }
        return texts;
    }

    /** Log-likelihoods of all tokens after these; depends on all of them and their places. */
    private static double[] model(int[] before) {
        long seed = 17;
        for (int token : before) {
            seed = seed * 31 + token;
        }
        Random random = new Random(seed);
        double[] logits = new double[256];
        double sum = 0;
        for (int i = 0; i < logits.length; i++) {
            double ease = "\n adehnot".indexOf(i) < 0 ? 0 : 8; // so that some words are guessed
            logits[i] = (float) (ease + 3 * random.nextDouble());
            sum += Math.exp(logits[i]);
        }
        double total = Math.log(sum);
        return Arrays.stream(logits).map(logit -> logit - total).toArray();
    }

    private static List<Score> score(List<Window> windows) {
        List<Score> scores = new ArrayList<>();
        for (Window window : windows) {
            double sum = 0;
            boolean greedy = true;
            for (int place = window.count() - window.targets(); place < window.count(); place++) {
                int[] before = new int[place];
                Arrays.setAll(before, window::token);
                double[] likelihoods = model(before);
                sum += likelihoods[window.token(place)];
                greedy &= likeliest(likelihoods) == window.token(place);
            }
            scores.add(new Score(sum, greedy));
        }
        return scores;
    }

    private static int likeliest(double[] values) {
        int best = 0;
        for (int i = 1; i < values.length; i++) {
            best = values[i] > values[best] ? i : best;
        }
        return best;
    }

    private Map<String, Number> measure(TaskRequest request, Path data) {
        PreparedTask task = TaskData.of(data, false).prepare(request, BYTES, CONTEXT);
        return task.total(score(task.windows())).measures();
    }

    private static void assertFigure(Map<String, Number> measures, String name, double expected) {
        assertThat(requireNonNull(measures.get(name)).doubleValue())
                .as(name)
                .isCloseTo(expected, within(1e-12 * Math.max(1, Math.abs(expected))));
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 5, 23, 24})
    void wikitextByMegatronIsItsPaddedAndMaskedWindows(int overlap) throws IOException {
        double allLosses = 0;
        long allTargets = 0;
        long allWords = 0;
        for (int i = 0; i < texts.size(); i++) {
            String text = texts.get(i);
            if (!text.strip().contains(" ")) {
                continue;
            }
            Files.writeString(folder.resolve("%03d.txt".formatted(i)), text);
            int[] tokens = BYTES.encode(WikitextDetokenizer.apply(text));
            allLosses += paddedLosses(tokens, overlap);
            allTargets += tokens.length - 1;
            allWords += text.strip().split(" ", -1).length - 1;
        }

        var request =
                new TaskRequest(TaskKind.WIKITEXT, Protocol.MEGATRON, OptionalInt.of(overlap));
        Map<String, Number> measures = measure(request, folder);

        double loss = allLosses / allTargets;
        assertThat(measures.get("tokens")).isEqualTo(allTargets);
        assertFigure(measures, "loss", loss);
        assertFigure(measures, "perplexity", Math.exp(Math.min(20, loss)));
        assertFigure(
                measures,
                "adjustedPerplexity",
                Math.exp(Math.min(20, loss * allTargets / allWords)));
    }

    private static double paddedLosses(int[] tokens, int overlap) {
        int targets = tokens.length - 1;
        int sequences =
                Math.max((int) Math.ceil(Math.max(targets - overlap, 0) / (double) overlap) + 1, 1);
        double total = 0;
        for (int index = 0; index < sequences; index++) {
            int start = index * overlap;
            int[] padded = new int[CONTEXT + 1];
            int[] mask = new int[CONTEXT + 1];
            for (int i = 0; i <= CONTEXT && start + i < tokens.length; i++) {
                padded[i] = tokens[start + i];
                mask[i] = 1;
            }
            for (int place = 1; place <= CONTEXT; place++) {
                boolean dropped = overlap != CONTEXT && index != 0 && place - 1 < CONTEXT - overlap;
                if (mask[place] == 1 && !dropped) {
                    total -= model(Arrays.copyOf(padded, place))[padded[place]];
                }
            }
        }
        return total;
    }

    @Test
    void wikitextByTheHarnessIsEachPageAfterTheTokenThatBeginsIt() throws IOException {
        List<String> lines = new ArrayList<>();
        double logLikelihood = 0;
        long words = 0;
        long bytes = 0;
        for (String page : texts) {
            lines.add(JSON.writeValueAsString(Map.of("page", page)));
            words += page.split("\\s+", -1).length;
            bytes += page.getBytes(StandardCharsets.UTF_8).length;
            logLikelihood += rolling(BYTES.encode(WikitextDetokenizer.apply(page)));
        }
        Path file = Files.write(folder.resolve("pages.jsonl"), lines);

        Map<String, Number> measures =
                measure(
                        new TaskRequest(TaskKind.WIKITEXT, Protocol.LM_EVAL, OptionalInt.empty()),
                        file);

        assertThat(measures.get("words")).isEqualTo(words);
        assertFigure(measures, "wordPerplexity", Math.exp(-logLikelihood / words));
        assertFigure(measures, "bytePerplexity", Math.exp(-logLikelihood / bytes));
        assertFigure(measures, "bitsPerByte", -logLikelihood / bytes / Math.log(2));
    }

    private static double rolling(int[] tokens) {
        List<Integer> list = Arrays.stream(tokens).boxed().toList();
        double total = 0;
        int first = Math.min(CONTEXT, list.size());
        List<Integer> input = new ArrayList<>(List.of((int) '\n'));
        input.addAll(list.subList(0, first - 1));
        total += continuation(input, list.subList(0, first));
        for (int predicted = first; predicted < list.size(); ) {
            int count = Math.min(list.size() - predicted, CONTEXT);
            int end = predicted + count;
            total +=
                    continuation(
                            list.subList(end - CONTEXT - 1, end - 1),
                            list.subList(end - count, end));
            predicted += count;
        }
        return total;
    }

    /** Of the last places alone; the input lacks the last token to be guessed. */
    private static double continuation(List<Integer> input, List<Integer> targets) {
        double total = 0;
        for (int i = 0; i < targets.size(); i++) {
            List<Integer> before = input.subList(0, input.size() - targets.size() + i + 1);
            total += model(ints(before))[targets.get(i)];
        }
        return total;
    }

    private static int[] ints(List<Integer> list) {
        return list.stream().mapToInt(Integer::intValue).toArray();
    }

    @Test
    void lambadaByMegatronIsTheLastWordOfEachText() throws IOException {
        int strict = 0;
        int loose = 0;
        for (String text : texts) {
            String[] words = text.strip().split("\\s+");
            String last = words[words.length - 1];
            int[] before = BYTES.encode(text.substring(0, text.lastIndexOf(last)).strip());
            int[] whole = BYTES.encode(text);
            strict += isGreedy(before, BYTES.encode(" " + last)) ? 1 : 0;
            loose +=
                    isGreedy(
                                    Arrays.copyOf(whole, whole.length - 1),
                                    new int[] {whole[whole.length - 1]})
                            ? 1
                            : 0;
        }

        Map<String, Number> measures =
                measure(
                        new TaskRequest(TaskKind.LAMBADA, Protocol.MEGATRON, OptionalInt.empty()),
                        passages());

        assertThat(measures.get("texts")).isEqualTo(200L);
        assertFigure(measures, "accuracy", strict / 200.0);
        assertFigure(measures, "lastTokenAccuracy", loose / 200.0);
    }

    private static boolean isGreedy(int[] before, int[] targets) {
        int[] all = Arrays.copyOf(before, before.length + targets.length);
        System.arraycopy(targets, 0, all, before.length, targets.length);
        int cut = Math.max(0, all.length - CONTEXT - 1);
        boolean greedy = true;
        for (int place = Math.max(before.length, cut + 1); place < all.length; place++) {
            greedy &= likeliest(model(Arrays.copyOfRange(all, cut, place))) == all[place];
        }
        return greedy;
    }

    @Test
    void lambadaByTheHarnessIsWhatFollowsTheLastBlank() throws IOException {
        texts.removeIf(text -> text.contains("endless")); // more than the context has places
        texts.replaceAll(text -> text.strip().replaceAll("\\s+", " "));
        double logLikelihood = 0;
        int right = 0;
        for (String text : texts) {
            int blank = text.lastIndexOf(' ');
            int[] before = blank < 0 ? new int[] {'\n'} : BYTES.encode(text.substring(0, blank));
            int[] target = BYTES.encode(" " + text.substring(blank + 1));
            int[] all = Arrays.copyOf(before, before.length + target.length);
            System.arraycopy(target, 0, all, before.length, target.length);
            int[] kept = Arrays.copyOfRange(all, Math.max(0, all.length - CONTEXT - 1), all.length);
            for (int place = kept.length - target.length; place < kept.length; place++) {
                logLikelihood += model(Arrays.copyOf(kept, place))[kept[place]];
            }
            right += isGreedy(before, target) ? 1 : 0;
        }

        Map<String, Number> measures =
                measure(
                        new TaskRequest(TaskKind.LAMBADA, Protocol.LM_EVAL, OptionalInt.empty()),
                        passages());

        assertFigure(measures, "perplexity", Math.exp(-logLikelihood / texts.size()));
        assertFigure(measures, "accuracy", (double) right / texts.size());
    }

    private Path passages() throws IOException {
        List<String> lines = new ArrayList<>();
        for (String text : texts) {
            lines.add(JSON.writeValueAsString(Map.of("text", text)));
        }
        return Files.write(folder.resolve("lambada.jsonl"), lines);
    }

    @Test
    void theLikeliestChoiceIsTakenAsItIsAndByItsLength() throws IOException {
        List<String> lines = new ArrayList<>();
        int[] right = new int[3];
        for (int i = 0; i + 3 < texts.size(); i++) {
            String context = texts.get(i).strip();
            List<String> choices =
                    List.of("caf\u00e9 " + i, "tea", "a longer answer", "\u65e5" + i);
            int answer = i % 4;
            lines.add(
                    JSON.writeValueAsString(
                            Map.of("context", context, "choices", choices, "answer", answer)));
            double[] sums = new double[4];
            double[] byCharacter = new double[4];
            double[] byByte = new double[4];
            for (int c = 0; c < 4; c++) {
                int[] before = BYTES.encode(context);
                int[] target = BYTES.encode(" " + choices.get(c));
                int[] all = Arrays.copyOf(before, before.length + target.length);
                System.arraycopy(target, 0, all, before.length, target.length);
                int cut = Math.max(0, all.length - CONTEXT - 1);
                for (int place = all.length - target.length; place < all.length; place++) {
                    sums[c] += model(Arrays.copyOfRange(all, cut, place))[all[place]];
                }
                byCharacter[c] = sums[c] / choices.get(c).length();
                byByte[c] = sums[c] / (target.length - 1);
            }
            right[0] += likeliest(sums) == answer ? 1 : 0;
            right[1] += likeliest(byCharacter) == answer ? 1 : 0;
            right[2] += likeliest(byByte) == answer ? 1 : 0;
        }
        Path file = Files.write(folder.resolve("choices.jsonl"), lines);

        Map<String, Number> measures =
                measure(
                        new TaskRequest(TaskKind.CHOICES, Protocol.LM_EVAL, OptionalInt.empty()),
                        file);

        assertFigure(measures, "acc", right[0] / (double) lines.size());
        assertFigure(measures, "accNorm", right[1] / (double) lines.size());
        assertFigure(measures, "accBytes", right[2] / (double) lines.size());
    }
}
