package dev.penstock.runtime.evaluation;

import dev.penstock.runtime.tokenizer.Tokenizer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** WikiText as it is distributed: tokens apart, a page after the other. */
final class WikitextTask {
    /** Perplexities beyond this are all called the same, as in Megatron-LM. */
    private static final double LARGEST_EXPONENT = 20;

    private WikitextTask() {}

    /**
     * Megatron-LM: a file is one text.
     *
     * @param stride 1 to {@code context}
     */
    static List<TaskText> megatron(
            TaskFiles reader, List<Path> files, Tokenizer tokenizer, int context, int stride) {
        List<TaskText> texts = new ArrayList<>();
        for (int file = 0; file < files.size(); file++) {
            String whole = reader.text(files.get(file));
            long words = 1 + Whitespace.strip(whole).chars().filter(c -> c == ' ').count();
            int[] tokens = tokenizer.encode(WikitextDetokenizer.apply(whole));
            if (words < 2) {
                reader.wrong(files.get(file).toString(), "a text of at least 2 words", "fewer");
            }
            List<Window> windows = TextWindows.overlapping(tokens, context, stride);
            texts.add(
                    new TaskText(
                            file,
                            windows,
                            (tally, scores) -> {
                                tally.texts++;
                                tally.tokens += Math.max(0, tokens.length - 1);
                                tally.words += words;
                                scores.forEach(
                                        score -> tally.logLikelihood += score.logLikelihood());
                            }));
        }
        return texts;
    }

    static Map<String, Number> megatronMeasures(Tally tally) {
        double loss = tally.loss();
        double ratio = (double) tally.tokens / (tally.words - tally.texts); // one less, each
        return new Measures()
                .count("tokens", tally.tokens)
                .count("words", tally.words)
                .figure("loss", loss)
                .figure("perplexity", Math.exp(Math.min(LARGEST_EXPONENT, loss)))
                .figure("adjustedPerplexity", Math.exp(Math.min(LARGEST_EXPONENT, loss * ratio)))
                .all();
    }

    /** lm-evaluation-harness: each page is a text, after the token that begins one. */
    static List<TaskText> lmEval(
            TaskFiles reader, List<Path> files, Tokenizer tokenizer, int context) {
        List<TaskText> texts = new ArrayList<>();
        for (int file = 0; file < files.size(); file++) {
            for (String page : pages(reader, files.get(file))) {
                texts.add(page(file, page, tokenizer, context));
            }
        }
        return texts;
    }

    private static TaskText page(int file, String page, Tokenizer tokenizer, int context) {
        int[] encoded = tokenizer.encode(WikitextDetokenizer.apply(page));
        int[] tokens = new int[encoded.length + 1];
        tokens[0] = tokenizer.textStart();
        System.arraycopy(encoded, 0, tokens, 1, encoded.length);
        // both of the page as it came
        long words = Whitespace.parts(page);
        long bytes = page.getBytes(StandardCharsets.UTF_8).length;
        return new TaskText(
                file,
                TextWindows.rolling(tokens, context),
                (tally, scores) -> {
                    tally.texts++;
                    tally.tokens += encoded.length;
                    tally.words += words;
                    tally.bytes += bytes;
                    scores.forEach(score -> tally.logLikelihood += score.logLikelihood());
                });
    }

    /** Pages of the data set: JSON lines with a {@code page}, or text that headings cut. */
    private static List<String> pages(TaskFiles reader, Path file) {
        if (file.toString().matches(".*\\.jsonl(\\.gz)?")) {
            return reader.lines(file).stream().map(line -> reader.textOf(line, "page")).toList();
        }
        List<String> pages = new ArrayList<>();
        List<String> page = new ArrayList<>();
        String text = reader.text(file).replace("\r\n", "\n").replace('\r', '\n');
        for (String line : text.split("\n", -1)) {
            if (isTitle(line)) {
                String ended = String.join("\n", page);
                if (!Whitespace.strip(ended).isEmpty()) {
                    pages.add(ended);
                }
                page.clear();
            }
            page.add(line);
        }
        pages.add(String.join("\n", page));
        return pages;
    }

    /** Headings of sections have more than one equals sign on either side. */
    private static boolean isTitle(String line) {
        String joined = Whitespace.strip(line.replace("= = =", "===").replace("= =", "=="));
        return joined.startsWith("= ") && joined.endsWith(" =");
    }

    static Map<String, Number> lmEvalMeasures(Tally tally) {
        return new Measures()
                .count("pages", tally.texts)
                .count("tokens", tally.tokens)
                .count("words", tally.words)
                .count("bytes", tally.bytes)
                .figure("wordPerplexity", Math.exp(-tally.logLikelihood / tally.words))
                .figure("bytePerplexity", Math.exp(-tally.logLikelihood / tally.bytes))
                .figure("bitsPerByte", tally.bitsPerByte())
                .all();
    }
}
