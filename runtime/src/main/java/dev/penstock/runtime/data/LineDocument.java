package dev.penstock.runtime.data;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.List;

/** How a JSON line becomes a document. */
interface LineDocument {
    /**
     * Encodes it, or says what is wrong with it.
     *
     * @param at where the line is, for a message
     * @param parts receives the document
     * @param problems receives why there is none
     */
    void encode(String at, JsonNode line, List<Stretch.Part> parts, List<DataProblem> problems);

    /** Returns what else to try where a line is none, after "repair the line"; perhaps nothing. */
    String otherwise();
}
