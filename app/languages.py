"""The spoken languages a sender may choose: the ISO 639-1 codes that Whisper models know.

Two of them have no two-letter code and stay as Whisper names them: haw, yue. Not every model
knows each: Cantonese (yue) came with large-v3.
"""

_CODES = (
    "af am ar as az ba be bg bn bo br bs ca cs cy da de el en es et eu fa fi fo fr gl gu ha haw he"
    " hi hr ht hu hy id is it ja jv ka kk km kn ko la lb ln lo lt lv mg mi mk ml mn mr ms mt my ne"
    " nl nn no oc pa pl ps pt ro ru sa sd si sk sl sn so sq sr su sv sw ta te tg th tk tl tr tt uk"
    " ur uz vi yi yo yue zh"
)

SPOKEN: tuple[str, ...] = tuple(_CODES.split())

WHISPERS_OWN_CODES = {"jv": "jw"}
"""Where Whisper's code for a language, here Javanese, is not the standard's."""
