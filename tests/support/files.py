"""Small PDF and DOCX files made by hand, so that tests say exactly what is in them."""

from __future__ import annotations

import base64
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape

TRANSITIONAL = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
STRICT = "http://purl.oclc.org/ooxml/wordprocessingml/main"
W = f'xmlns:w="{TRANSITIONAL}"'


def pdf(
    path: Path, pages: Sequence[str], *, labels: str = "", outline: Sequence[tuple[str, int]] = (), title: str = "", field: str = ""
) -> Path:
    """A PDF with the lines of each text on a page. ``labels``: a page label dictionary; ``outline``: (title, page from 0);
    ``field``: the value of a form field named Customer on the first page."""
    objects: list[str] = ["", "", "<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>"]
    kids = []
    for text in pages:
        lines = [line.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)") for line in text.split("\n")]
        content = "BT /F1 11 Tf 14 TL 50 780 Td " + " ".join(f"({line}) Tj T*" for line in lines) + " ET"
        objects.append(f"<</Length {len(content.encode('cp1252'))}>>stream\n{content}\nendstream")
        annotations = "/Annots[__FIELD__]" if field and not kids else ""
        objects.append(
            f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Resources<</Font<</F1 3 0 R>>>>/Contents {len(objects)} 0 R{annotations}>>"
        )
        kids.append(len(objects))
    catalog = "/Pages 2 0 R" + (f"/PageLabels<</Nums[{labels}]>>" if labels else "")
    objects[1] = f"<</Type/Pages/Kids[{' '.join(f'{k} 0 R' for k in kids)}]/Count {len(kids)}>>"
    if outline:
        catalog += f"/Outlines {len(objects) + 1} 0 R"
        first = len(objects) + 2
        objects.append(f"<</Count {len(outline)}/First {first} 0 R/Last {first + len(outline) - 1} 0 R>>")
        for i, (name, page) in enumerate(outline):
            following = f"/Next {first + i + 1} 0 R" if i + 1 < len(outline) else ""
            objects.append(f"<</Title({name})/Parent {first - 1} 0 R/Dest[{kids[page]} 0 R/Fit]{following}>>")
    if field:
        objects.append(f"<</Type/Annot/Subtype/Widget/FT/Tx/T(Customer)/V({field})/Rect[50 50 200 70]/F 4/P {kids[0]} 0 R>>")
        catalog += f"/AcroForm<</Fields[{len(objects)} 0 R]>>"
        objects[kids[0] - 1] = objects[kids[0] - 1].replace("__FIELD__", f"{len(objects)} 0 R")
    objects.append(f"<</Title({title})>>")
    objects[0] = f"<</Type/Catalog{catalog}>>"
    return _write(path, objects)


def _write(path: Path, objects: Sequence[str]) -> Path:
    out = b"%PDF-1.7\n"
    offsets = []
    for number, content in enumerate(objects, start=1):
        offsets.append(len(out))
        out += f"{number} 0 obj\n{content}\nendobj\n".encode("cp1252")
    table = "".join(f"{offset:010d} 00000 n \n" for offset in offsets)
    size = len(objects) + 1
    trailer = f"xref\n0 {size}\n0000000000 65535 f \n{table}trailer<</Size {size}/Root 1 0 R/Info {size - 1} 0 R>>\nstartxref\n{len(out)}\n%%EOF\n"
    path.write_bytes(out + trailer.encode())
    return path


def docx(path: Path, body: str, *, strict: bool = False, main: str = "word/main.xml", **parts: str) -> Path:
    """A DOCX around the XML of a body; ``parts`` are further parts (styles, footnotes, header …) by kind."""
    rels = '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{}</Relationships>'
    link = f'<Relationship Id="r1" Type="http://x/officeDocument" Target="{main}"/>'
    links = "".join(f'<Relationship Id="{k}" Type="http://x/{k.rstrip("0123456789")}" Target="{k}.xml"/>' for k in parts)
    folder, _, name = main.rpartition("/")
    prefix = f"{folder}/" if folder else ""
    content = {
        "_rels/.rels": rels.format(link),
        f"{prefix}_rels/{name}.rels": rels.format(links),
        main: f"<w:document {W}><w:body>{body}</w:body></w:document>",
        **{f"{prefix}{kind}.xml": text for kind, text in parts.items()},
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for part, text in content.items():
            archive.writestr(part, text.replace(TRANSITIONAL, STRICT) if strict else text)
    return path


def r(text: str, properties: str = "") -> str:
    """A run of text."""
    return f"<w:r>{f'<w:rPr>{properties}</w:rPr>' if properties else ''}<w:t xml:space='preserve'>{escape(text)}</w:t></w:r>"


def p(content: str, style: str = "", *, number: tuple[int, int] | None = None) -> str:
    """A paragraph; ``number``: (list, level)."""
    properties = f'<w:pStyle w:val="{style}"/>' if style else ""
    if number:
        properties += f'<w:numPr><w:ilvl w:val="{number[1]}"/><w:numId w:val="{number[0]}"/></w:numPr>'
    return f"<w:p>{f'<w:pPr>{properties}</w:pPr>' if properties else ''}{content}</w:p>"


def table(*rows: Sequence[str]) -> str:
    lines = ["".join(f"<w:tc>{p(r(cell))}</w:tc>" for cell in row) for row in rows]
    return f"<w:tbl>{''.join(f'<w:tr>{line}</w:tr>' for line in lines)}</w:tbl>"


def scanned_pdf(path: Path, text: str) -> Path:
    """A PDF whose second page is a picture of the text, as a scanner makes it; the first says "The first page"."""
    import pypdfium2

    source = pypdfium2.PdfDocument(pdf(path, [text]))
    bitmap = source[0].render(scale=3, grayscale=True)
    width, height = bitmap.width, bitmap.height
    view = memoryview(bitmap.buffer).cast("B")
    pixels = b"".join(bytes(view[y * bitmap.stride : y * bitmap.stride + width]) for y in range(height))
    source.close()
    packed = base64.a85encode(zlib.compress(pixels)).decode() + "~>"
    picture = f"<</Type/XObject/Subtype/Image/Width {width}/Height {height}/ColorSpace/DeviceGray/BitsPerComponent 8"
    draw = "q 595 0 0 842 0 0 cm /I1 Do Q"
    first = "BT /F1 11 Tf 50 780 Td (The first page) Tj ET"
    box = "/Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]"
    return _write(
        path,
        [
            "<</Type/Catalog/Pages 2 0 R>>",
            "<</Type/Pages/Kids[4 0 R 6 0 R]/Count 2>>",
            "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
            f"<<{box}/Resources<</Font<</F1 3 0 R>>>>/Contents 5 0 R>>",
            f"<</Length {len(first)}>>stream\n{first}\nendstream",
            f"<<{box}/Resources<</XObject<</I1 8 0 R>>>>/Contents 7 0 R>>",
            f"<</Length {len(draw)}>>stream\n{draw}\nendstream",
            f"{picture}/Filter[/ASCII85Decode/FlateDecode]/Length {len(packed)}>>stream\n{packed}\nendstream",
            "<<>>",
        ],
    )


# A page "the aes page", encrypted with AES-256; making such a file needs a package that nothing else here needs.
_AES_EMPTY_PASSWORD = (
    "c-oCrJB%Df5G5e6Mu@}`5k{Sy5CKg8sy}FT()n)JAh2$A3wD4E>aOlS&uMSwG&_6vEFpmdB8QL>K!9WdG7=M7BuGdISy&*5zyV0kN$J`9c;zKvW`gQB)$dhR"
    "SJ&EjYxFXEMHFj){Q2Ykf)Pp@zgG+fMfujzK_um->)f>2Ey}UmjWfct!%nfjUc@@|j(laq!mlXbsKSiALqzXSt`+5GGp{?smbQxj+}aDZF}ofsm6v0v+{NZb"
    "=A!up3&cp?Gw#G$GjA~m)iaEmyk}uBB2R<NUly*r%r_(OMCfuwzvn2*$=r8~We>8Vyy#|e!Ct-=r-!kt&=uvd#wJwtE-9~8^+r9bPJtx>SQ2<M*1O$xVrc(="
    "*0s^?7jyXO=v?{2-DmH7_~4nR9zOi*^S$4mJ9mD3>C>mbxb?%AUp;^O!YB7W{vbU%|Nggk?cS?*zPs?z;otAh{(0$}tB>yA`}M`m&u)GHvoGr3@$2^<-2SE4"
    "J)u5{KrN?Ob<;=&(K98fbk=d9k`_)19ng7gBw93(&`AqX7-hM!NoZ6+(FmkY8t&-&Qi6Jk{tAJ7Bt)I1$|2ihBDs}TX>NHwnrhm`mXwpu)xou)D7VP~K&#{d"
    "SXOfZ1x6KxR>HBMEz{J}kfQZQLy*!iU{YtpLrM$)jYbKaieQm5!59r(d216=Dp51-Qf`5_$$)YetzgzhmlYBVQqu&+dgVm$=#rDncuFY>h(S=`LI&YIbxgWw"
    "yrj7V){7J|7cWUCAaKD<u9?yXV&7<^MgL8@aAIxDyX(WlzL(3b2DcAl-8)?-<;HMwMVu8%@Y7bEbo(Q6Owcdd$BXSD8So%-+L9wUA%gadd8$AGk6dyC`IKS|"
    "9CdKUYRx4ogTh9I$QU|J`$A+I#Uj%}DGI2$_udE-z_Uzbr3fmZF;-d4OmGpCa4O2kY?4fQFIB=!Gmh<kzI7BaD9;k|D4n-l8&p(Vt0RKq4whTxMjKN>i7DvW"
    "Lll4jlE@jx@{L*isUKrXu3(Id6^sL0!Gts`nAEEn=q0|cb=5Ssi=LiTH)9UD+-aITx{l}3>vd{~I<dF%R2onRIq9Ht!wTxTN3KC=V;EINC57w%$K~2$q_jr|"
    "9nq(AYSy{7TNI8lZi=<F;r6Kb7q?H5Uj"
)
_AES_PASSWORD = (
    "c-oCr&5IpH5Wk3r0Ywv#5Q+3<@svz|Re#81VUvB&6%G5`mqa84?2qcrnBAFm-fT$3n<v48pb*rPe}D%CZz>2L1%-eY!Gq#K$jO6XBw)|%M;<;8&J0ZVZ>oM("
    "{i~W<nXXUHvU8$X`Q_K|?-q<u()ibl(Wodd-QGh|UT~e;X|{`U>b7xCcsAH7R#ywGV{gcp90t3he6fmia+QeQo?I)+3(bDr5w_qe{?oM&)M7S0h*Vz0Sh@4f"
    "t;|L94Hk%zyl33Pd9&Y!oK(*+X|m6-U_>4znV%fE?lRw;z`s(LOYwV-qMYsfZrJu9E6Ve3jsttSfjc*`tAZ=aaUGgi)!U?erK;EJd36LV1b~GAFJZmiT_=Y2"
    "-{)P6Znt=Fa^sU9zj^cyeeRFb_b)&5(W%qVPB)&o`^Co}{`JG3XCD9R)Eh6qf9~Fc-`;wgy?5`O6ZfC|>8U&I+1(qLzWm_Z@4kNb`BxwL{LJ5<J^k~iS5MAf"
    "`<*=2$33Jz%s?$3vFdh^jDR_fQbZ*Tg5^p8+Q0!RB64dzH3po=XriXnd*L|uTp_UJj0&8tE*wxV&|e{tOG4D~Q90!Glt^x+RhnC#OH=K1*phPAxjMQw7Ud=x"
    "ap@fg5uNwRg0zsR=TUQy)+H*a;{p^&hAza^rvZvOCQ~vff>)BtNCPTsFr`F+g`6mtDP%Xsz=qrcm&r&N!(%W)CgFuuoW`V0iYf%{qG5=NDJq>!fobMhuslhX"
    "l+xDbs0fZibOI8OMy4!Jv{Euj^E>AmsP7wXGW6f9i-)VV{qFksX5Y)@dJ{JHu<ng6l5%Z4yCRN-68xxDXWj0E91!%I_Tgr8Oh!5w8?zq4B%mo~QA1xD&k{fk"
    "-uZl7sugHNi;@WnxqN|&h=K-fbuUDwam+;rm@KCZfN3p4a4d)b7(@z@a%4ezlbI8Etuq;NLs5HhAO@N#w!8VSgDih=ihG^7lun5(eL$4Jv#CjZu~lxhm<mcv"
    "L60w@00fXkjxm=1nBhzP5L0pqV_Ym@9M}>jq*=nGUdBK#@O7=LcCa0KdRD!OIpuPzY4Yegm`5+vsUhlcy`HDih&#m`4UQtuQc4*)M9X|%Ey;AStN+L3+Avbu"
    "+j||+M{{c4xwadGV~m?(Wo5iMDgFUmw3Xi"
)


def aes_pdf(path: Path, *, empty_password: bool) -> Path:
    """A PDF encrypted with AES-256, whose user password is empty (anybody may read it) or not."""
    path.write_bytes(zlib.decompress(base64.b85decode(_AES_EMPTY_PASSWORD if empty_password else _AES_PASSWORD)))
    return path
