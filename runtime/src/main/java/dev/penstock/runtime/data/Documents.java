package dev.penstock.runtime.data;

import dev.penstock.runtime.tokenizer.TextEncoder;
import dev.penstock.runtime.tokenizer.TextPieces;
import dev.penstock.runtime.tokenizer.TextTooLongException;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/**
 * Encodes documents that are in memory as a whole, long ones piece by piece as files are.
 *
 * @param name what the encoder is called in a message
 */
record Documents(TextEncoder encoder, String name) {
    /** A document of this size is no text, or meant to fill the memory. */
    static final int LONGEST_BYTES = 64 << 20;

    /** Characters up to which a document is encoded at once. */
    private static final int AT_ONCE = 1 << 20;

    /**
     * Encodes a document, or says what is wrong with it.
     *
     * @param at where it is, for a message
     * @param parts receives it
     * @param problems receives why it cannot be encoded
     */
    void encode(String at, String text, List<Stretch.Part> parts, List<DataProblem> problems) {
        encode(at, true, true, text, parts, problems);
    }

    /**
     * Encodes a part of a document.
     *
     * @param begins whether the document begins with it
     * @param counted whether it is what a model learns to say
     */
    void encode(
            String at,
            boolean begins,
            boolean counted,
            String text,
            List<Stretch.Part> parts,
            List<DataProblem> problems) {
        try {
            parts.add(new Stretch.Part(begins, tokens(text), counted));
        } catch (TextTooLongException e) {
            problems.add(
                    new DataProblem(
                            "data.format",
                            e.expected(name),
                            at + ", which is longer",
                            "divide it into several documents"));
        } catch (IOException e) {
            throw new IllegalStateException("it is read from memory", e);
        }
    }

    private int[] tokens(String text) throws IOException {
        if (text.length() <= AT_ONCE) {
            return encoder.encode(text);
        }
        TextPieces pieces =
                encoder.pieces(new ByteArrayInputStream(text.getBytes(StandardCharsets.UTF_8)));
        List<int[]> encoded = new ArrayList<>();
        for (TextPieces.Piece piece = pieces.next(); piece != null; piece = pieces.next()) {
            encoded.add(piece.encode());
        }
        int[] all = new int[encoded.stream().mapToInt(part -> part.length).sum()];
        int at = 0;
        for (int[] part : encoded) {
            System.arraycopy(part, 0, all, at, part.length);
            at += part.length;
        }
        return all;
    }
}
