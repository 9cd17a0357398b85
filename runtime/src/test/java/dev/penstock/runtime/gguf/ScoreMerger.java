package dev.penstock.runtime.gguf;

import static java.util.Objects.requireNonNull;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Tokenizes as llama.cpp does with a file whose {@code tokenizer.ggml.model} is {@code llama},
 * special tokens in the text included: written plainly after llm_tokenizer_spm and
 * tokenizer_st_partition in its llama-vocab.cpp, and sharing nothing with the code that writes such
 * files.
 */
final class ScoreMerger {
    private static final String SPACE = "\u2581";

    private final List<String> tokens = new ArrayList<>();
    private final List<Float> scores = new ArrayList<>();
    private final List<Integer> types = new ArrayList<>();
    private final Map<String, Integer> numbers = new HashMap<>();
    private final boolean addsSpace;

    ScoreMerger(GgufReader gguf) {
        for (Object token : (List<?>) gguf.value("tokenizer.ggml.tokens")) {
            numbers.put((String) token, tokens.size());
            tokens.add((String) token);
        }
        for (Object score : (List<?>) gguf.value("tokenizer.ggml.scores")) {
            scores.add((Float) score);
        }
        for (Object type : (List<?>) gguf.value("tokenizer.ggml.token_type")) {
            types.add((Integer) type);
        }
        addsSpace = (Boolean) gguf.value("tokenizer.ggml.add_space_prefix");
    }

    /** Returns the tokens without those that are put around a text. */
    int[] encode(String text) {
        List<Integer> ids = new ArrayList<>();
        boolean afterSpecial = true;
        for (Object part : parts(text)) {
            if (part instanceof Integer special) {
                ids.add(special);
                afterSpecial = true;
            } else {
                String raw = (String) part;
                merge((addsSpace && afterSpecial ? " " : "") + raw, ids);
                afterSpecial = false;
            }
        }
        return ids.stream().mapToInt(Integer::intValue).toArray();
    }

    /** Texts, and numbers of special tokens between them; longer ones are looked for first. */
    private List<Object> parts(String text) {
        List<Integer> special = new ArrayList<>();
        for (int number = 0; number < tokens.size(); number++) {
            if (List.of(2, 3, 4).contains(types.get(number))) {
                special.add(number);
            }
        }
        special.sort((a, b) -> bytes(tokens.get(b)).length - bytes(tokens.get(a)).length);
        List<Object> parts = new ArrayList<>();
        if (!text.isEmpty()) {
            parts.add(text);
        }
        for (int number : special) {
            List<Object> next = new ArrayList<>();
            for (Object part : parts) {
                if (part instanceof String raw) {
                    String token = tokens.get(number);
                    int from = 0;
                    for (int at = raw.indexOf(token); at >= 0; at = raw.indexOf(token, from)) {
                        if (at > from) {
                            next.add(raw.substring(from, at));
                        }
                        next.add(number);
                        from = at + token.length();
                    }
                    if (from < raw.length()) {
                        next.add(raw.substring(from));
                    }
                } else {
                    next.add(part);
                }
            }
            parts = next;
        }
        return parts;
    }

    /** Joins the neighbours with the highest score, the leftmost of equals, while there are any. */
    private void merge(String text, List<Integer> ids) {
        List<String> symbols = new ArrayList<>();
        text.replace(" ", SPACE)
                .codePoints()
                .forEach(character -> symbols.add(Character.toString(character)));
        while (true) {
            int best = -1;
            float highest = Float.NEGATIVE_INFINITY;
            for (int i = 0; i + 1 < symbols.size(); i++) {
                Integer joined = numbers.get(symbols.get(i) + symbols.get(i + 1));
                if (joined != null && (best < 0 || scores.get(joined) > highest)) {
                    best = i;
                    highest = scores.get(joined);
                }
            }
            if (best < 0) {
                break;
            }
            symbols.set(best, symbols.get(best) + symbols.remove(best + 1));
        }
        for (String symbol : symbols) {
            Integer number = numbers.get(symbol);
            if (number != null) {
                ids.add(number);
                continue;
            }
            for (byte each : bytes(symbol)) {
                ids.add(requireNonNull(numbers.get("<0x%02X>".formatted(each & 0xff))));
            }
        }
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
