package dev.penstock.runtime.cli.train;

import dev.penstock.runtime.inference.TokenListener;
import dev.penstock.runtime.tokenizer.StreamingDecoder;
import dev.penstock.runtime.tokenizer.Tokenizer;
import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;

/**
 * Prints texts as they come: of those that are not over the first one at once, the others when it
 * is their turn. Used by one thread at a time.
 */
final class TextPrinter implements TokenListener {
    private final List<String> prompts;
    private final PrintWriter out;
    private final List<StreamingDecoder> decoders = new ArrayList<>();
    private final List<StringBuilder> unprinted = new ArrayList<>();
    private final BitSet ended = new BitSet();
    private int shown;

    TextPrinter(List<String> prompts, Tokenizer tokenizer, PrintWriter out) {
        this.prompts = prompts;
        this.out = out;
        for (String prompt : prompts) {
            decoders.add(new StreamingDecoder(tokenizer));
            unprinted.add(new StringBuilder(heading(decoders.size())).append(prompt));
        }
        print();
    }

    private String heading(int number) {
        return prompts.size() == 1 ? "" : "--- %d of %d%n".formatted(number, prompts.size());
    }

    @Override
    public boolean onToken(int text, int token) {
        unprinted.get(text).append(decoders.get(text).next(token));
        print();
        return !out.checkError();
    }

    @Override
    public void onEnd(int text) {
        unprinted.get(text).append(decoders.get(text).end()).append(System.lineSeparator());
        ended.set(text);
        print();
    }

    /** Prints what there is of texts that were not over. */
    void finish() {
        for (int text = ended.nextClearBit(0);
                text < prompts.size();
                text = ended.nextClearBit(text)) {
            onEnd(text);
        }
    }

    private void print() {
        boolean goesOn = true;
        while (goesOn && shown < prompts.size()) {
            out.print(unprinted.get(shown));
            unprinted.get(shown).setLength(0);
            goesOn = ended.get(shown);
            shown += goesOn ? 1 : 0;
        }
        out.flush();
    }
}
