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
                pieces.put(tensor.getKey(), piece(tensor.getValue()));
            }
            return pieces;
        } catch (JsonProcessingException e) {
            throw new StoredFileException(file, "damaged: " + KEY + " is not JSON", e);
        } catch (IllegalArgumentException | ArithmeticException e) {
            throw new StoredFileException(file, "damaged: " + KEY + ": " + e.getMessage(), e);
        }
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
        Strip bounds = all.strips().getFirst();
        for (Strip strip : strips) {
            require(
                    (long) strip.firstRow() + strip.rows() <= bounds.rows()
                            && (long) strip.firstColumn() + strip.columns() <= bounds.columns(),
                    node);
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
            throw new IllegalArgumentException(node + " is not a piece of a tensor");
        }
    }
}
