package dev.penstock.schedules.render;

import java.io.StringReader;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import javax.xml.parsers.DocumentBuilderFactory;
import org.w3c.dom.Document;
import org.w3c.dom.Element;
import org.xml.sax.InputSource;

/** What a reader of an SVG file finds in it: boxes and words at their places. */
record SvgPicture(double width, double height, List<Box> boxes, List<Words> words) {
    /** A rectangle; the name is its tooltip, empty without one. */
    record Box(String style, String name, double x, double y, double width, double height) {
        double right() {
            return x + width;
        }

        double bottom() {
            return y + height;
        }

        double middleX() {
            return x + width / 2;
        }

        double middleY() {
            return y + height / 2;
        }

        boolean holds(Words words) {
            return words.x >= x && words.x <= right() && words.y >= y && words.y <= bottom();
        }
    }

    /** A text at its base line. */
    record Words(String style, String text, double x, double y) {}

    static SvgPicture read(String svg) throws Exception {
        Document document =
                DocumentBuilderFactory.newInstance()
                        .newDocumentBuilder()
                        .parse(new InputSource(new StringReader(svg)));
        String[] view = document.getDocumentElement().getAttribute("viewBox").split(" ");
        return new SvgPicture(
                Double.parseDouble(view[2]),
                Double.parseDouble(view[3]),
                all(document, "rect", SvgPicture::box),
                all(document, "text", SvgPicture::words));
    }

    /** The idle background of every rank, from top to bottom, without the legend's sample. */
    List<Box> rows() {
        return boxes.stream().filter(b -> b.style.equals("idle") && b.height > 15).toList();
    }

    Box op(String name) {
        return only(boxes.stream().filter(b -> b.name.equals(name)).toList(), name);
    }

    Words words(String text) {
        return only(words.stream().filter(w -> w.text.equals(text)).toList(), text);
    }

    List<String> wordsIn(Box box) {
        return words.stream().filter(box::holds).map(Words::text).toList();
    }

    private static <T> T only(List<T> found, String what) {
        if (found.size() != 1) {
            throw new AssertionError("expected " + what + " once, found " + found);
        }
        return found.getFirst();
    }

    private static <T> List<T> all(Document document, String tag, Function<Element, T> read) {
        var nodes = document.getElementsByTagName(tag);
        var all = new ArrayList<T>();
        for (int i = 0; i < nodes.getLength(); i++) {
            all.add(read.apply((Element) nodes.item(i)));
        }
        return all;
    }

    private static Box box(Element e) {
        return new Box(
                e.getAttribute("class"),
                e.getTextContent(),
                number(e, "x"),
                number(e, "y"),
                number(e, "width"),
                number(e, "height"));
    }

    private static Words words(Element e) {
        return new Words(
                e.getAttribute("class"), e.getTextContent(), number(e, "x"), number(e, "y"));
    }

    private static double number(Element element, String attribute) {
        return Double.parseDouble(element.getAttribute(attribute));
    }
}
