package dev.penstock.runtime.tokenizer;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;

/** The {@code tokenizer.json} of a byte-level byte-pair encoding that cuts words as GPT-2 does. */
public final class ByteLevelJson {
    private ByteLevelJson() {}

    /**
     * Returns its content.
     *
     * @param tokens by number
     * @param specials numbers of those that mean something and stand for no text
     * @param merges in order: two tokens with a blank between
     */
    public static ObjectNode of(List<String> tokens, List<Integer> specials, List<String> merges) {
        ObjectNode root = JsonFiles.MAPPER.createObjectNode();
        root.put("version", "1.0");
        root.putNull("truncation");
        root.putNull("padding");
        ArrayNode added = root.putArray("added_tokens");
        for (int token : specials) {
            added.addObject()
                    .put("id", token)
                    .put("content", tokens.get(token))
                    .put("single_word", false)
                    .put("lstrip", false)
                    .put("rstrip", false)
                    .put("normalized", false)
                    .put("special", true);
        }
        root.putNull("normalizer");
        root.set("pre_tokenizer", byteLevel());
        root.set("post_processor", byteLevel());
        root.set("decoder", byteLevel());
        ObjectNode model = root.putObject("model");
        model.put("type", "BPE");
        model.putNull("dropout");
        model.putNull("unk_token");
        model.putNull("continuing_subword_prefix");
        model.putNull("end_of_word_suffix");
        model.put("fuse_unk", false);
        model.put("byte_fallback", false);
        ObjectNode vocabulary = model.putObject("vocab");
        for (int token = 0; token < tokens.size(); token++) {
            vocabulary.put(tokens.get(token), token);
        }
        merges.forEach(model.putArray("merges")::add);
        return root;
    }

    private static ObjectNode byteLevel() {
        return JsonFiles.MAPPER
                .createObjectNode()
                .put("type", "ByteLevel")
                .put("add_prefix_space", false)
                .put("trim_offsets", true)
                .put("use_regex", true);
    }
}
