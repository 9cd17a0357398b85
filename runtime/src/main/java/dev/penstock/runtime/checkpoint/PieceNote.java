package dev.penstock.runtime.checkpoint;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.penstock.actors.spi.TensorPiece;
import dev.penstock.actors.spi.TensorPiece.Strip;
import dev.penstock.runtime.safetensors.StoredFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The note in a safetensors header on which tensors of the file are pieces, and of what; a tensor
 * that it does not name is whole. A piece is stored in the file as a vector of F32. A file of whole
 * tensors has no note.
 *
 * <pre>
 *   "penstock.pieces": {"version": 1, "tensors": {
 *     "h.0.attn.c_attn.weight": {"whole": [8, 24],
 *                                "strips": [[0, 8, 0, 4], [0, 8, 8, 4], [0, 8, 16, 4]],
 *                                "elements": [0, 96]}}}
 * </pre>
 *
 * A strip is its first row, rows, first column and columns; see {@link TensorPiece}.
 */
final class PieceNote {
    /** Its key in the header's metadata. */
    static final String KEY = "penstock.pieces";

    private static final int VERSION = 1;

    /** Runs of elements in one piece; a column of the widest tensor has fewer. */
    static final int MOST_RUNS = 1 << 23;

    /** Characters of a piece that are shown in a message. */
    private static final int SHOWN = 300;

    private static final JsonMapper JSON = new JsonMapper();

    private PieceNote() {}

    static String print(Map<String, TensorPiece> pieces) {
        ObjectNode root = JSON.createObjectNode();
        root.put("version", VERSION);
        ObjectNode tensors = root.putObject("tensors");
        pieces.forEach((name, piece) -> print(tensors.putObject(name), piece));
        return root.toString();
    }

    private static void print(ObjectNode node, TensorPiece piece) {
        ArrayNode whole = node.putArray("whole");
        piece.whole().forEach(whole::add);
        ArrayNode strips = node.putArray("strips");
        for (Strip strip : piece.strips()) {
            strips.addArray()
                    .add(strip.firstRow())
                    .add(strip.rows())
                    .add(strip.firstColumn())
                    .add(strip.columns());
        }
        node.putArray("elements").add(piece.from()).add(piece.to());
    }

    /**
     * Reads a note; nothing in it is trusted before it is checked.
     *
     * @param file that it is from, for the message
     * @throws StoredFileException if it is damaged or of another version
     */
    static Map<String, TensorPiece> parse(Path file, String text) {
        try {
            JsonNode root = JSON.readTree(text);
            if (root.path("version").asInt() != VERSION) {
                throw new StoredFileException(
                        file,
                        "expected version %d of the note on pieces, got %s; use the Penstock that wrote it"
                                .formatted(VERSION, root.path("version")));
            }
            Map<String, TensorPiece> pieces = new LinkedHashMap<>();
            for (Map.Entry<String, JsonNode> tensor : root.path("tensors").properties()) {
                pieces.put(tensor.getKey(), piece(file, tensor.getKey(), tensor.getValue()));
            }
            return pieces;
        } catch (JsonProcessingException e) {
            throw new StoredFileException(file, "damaged: " + KEY + " is not JSON", e);
        }
    }

    private static TensorPiece piece(Path file, String name, JsonNode node) {
        try {
            return piece(node);
        } catch (ArithmeticException e) {
            throw damaged(file, name, notAPiece(node), e);
        } catch (IllegalArgumentException e) {
            throw damaged(file, name, String.valueOf(e.getMessage()), e);
        }
    }

    private static StoredFileException damaged(
            Path file, String name, String problem, Exception cause) {
        return new StoredFileException(
                file,
                "damaged: %s: %s: %s".formatted(KEY, shortened(name), shortened(problem)),
                cause);
    }

    private static String notAPiece(JsonNode node) {
        return shortened(node.toString()) + " is not a piece of a tensor";
    }

    private static String shortened(String text) {
        return text.length() <= SHOWN + 50 ? text : text.substring(0, SHOWN) + "..";
    }

    private static TensorPiece piece(JsonNode node) {
        List<Integer> whole = numbers(node.path("whole")).stream().map(Math::toIntExact).toList();
        List<Strip> strips = new ArrayList<>();
        for (JsonNode strip : node.path("strips")) {
            List<Integer> n = numbers(strip).stream().map(Math::toIntExact).toList();
            require(n.size() == 4, node);
            strips.add(new Strip(n.get(0), n.get(1), n.get(2), n.get(3)));
        }
        List<Long> elements = numbers(node.path("elements"));
        require(!whole.isEmpty() && !strips.isEmpty() && elements.size() == 2, node);
        TensorPiece all = TensorPiece.all(whole);
        all.wholeElements(); // fails if they are more than a number can say
        Strip bounds = all.strips().getFirst();
        int rows = strips.getFirst().rows();
        long columns = 0;
        for (Strip strip : strips) {
            require(
                    strip.rows() == rows
                            && (long) strip.firstRow() + rows <= bounds.rows()
                            && (long) strip.firstColumn() + strip.columns() <= bounds.columns(),
                    node);
            require(strip.columns() > 0 || strips.size() == 1, node);
            columns += strip.columns();
        }
        // strips side by side that are wider than the whole are twice at one place
        require(columns <= bounds.columns(), node);
        if (columns > 0) {
            long touched = Math.min(rows, (elements.get(1) - elements.get(0)) / columns + 2);
            require(touched * strips.size() <= MOST_RUNS, node);
        }
        return new TensorPiece(whole, strips, elements.get(0), elements.get(1));
    }

    private static List<Long> numbers(JsonNode node) {
        List<Long> numbers = new ArrayList<>();
        for (JsonNode item : node) {
            require(item.isIntegralNumber() && item.canConvertToLong(), node);
            require(item.longValue() >= 0, node);
            numbers.add(item.longValue());
        }
        return numbers;
    }

    private static void require(boolean good, JsonNode node) {
        if (!good) {
            throw new IllegalArgumentException(notAPiece(node));
        }
    }
}
