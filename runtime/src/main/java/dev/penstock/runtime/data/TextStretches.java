package dev.penstock.runtime.data;

import dev.penstock.runtime.data.Stretch.Encoded;
import dev.penstock.runtime.data.Stretch.Part;
import dev.penstock.runtime.tokenizer.TextEncoder;
import dev.penstock.runtime.tokenizer.TextPieces;
import java.io.IOException;
import java.io.InputStream;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** A file of text, which is one document. */
final class TextStretches implements FileStretches {
    private final TextPieces pieces;
    private final InputStream in;
    private CorpusPlace place;
    private boolean ended;

    /**
     * @param in the file from this place on; is closed with this
     */
    TextStretches(TextEncoder encoder, CorpusPlace place, InputStream in) {
        this.place = place;
        this.in = in;
        this.pieces = encoder.pieces(in);
    }

    @Override
    public @Nullable Stretch next() throws IOException {
        TextPieces.Piece piece = ended ? null : pieces.next();
        ended |= piece == null;
        CorpusPlace start = place;
        if (piece == null) {
            place = new CorpusPlace(start.file(), start.offset(), 0, true);
            // an empty file is an empty document
            return start.inDocument() ? null : stretch(start, new int[0]);
        }
        place = new CorpusPlace(start.file(), start.offset() + piece.bytes(), 0, true);
        return new Stretch(start, piece.bytes(), () -> encoded(start, piece.encode()));
    }

    private static Stretch stretch(CorpusPlace start, int[] tokens) {
        return new Stretch(start, 0, () -> encoded(start, tokens));
    }

    private static Encoded encoded(CorpusPlace start, int[] tokens) {
        return new Encoded(List.of(new Part(!start.inDocument(), tokens)), List.of());
    }

    @Override
    public void close() throws IOException {
        in.close();
    }
}
