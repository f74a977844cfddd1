"""A directed store of one part, as distbfs wrote it when there were no others.

It was made by ``distbfs generate kronecker -s 4 --edge-factor 2 --directed`` at commit
3d832086: its manifest and its part, compressed.
"""

import base64
import lzma

SIZES = {"manifest.h5": 2146, "part-00000.h5": 8356}
FILES = r"""
T>t<81poj4|NsC0{{Tdi1cYyTdv{94*!lTL#LM`Q=`Z71e%K$q;<N+Y+<12+i<meznI8x08$1>*8VCH%
`spq@YIJFOy}dH@#>{^*HnhDHPR)l#4y3-(6w~m<pQJfcmBMpiO+=7VWu<)1z(gWoPa7F1m=lU>Gq{ji
-At8D*+Z>r3meW+2?FH)2Pt%&0)h{gUCDQj(3x<}qObl8`sC$(wPfDoJba#8y;80i=WtSPhn08VPFY>H
+L!5LQIT1B7(Z_cUC;Pp_^7H8{2b#*a#gDaGucTwJQsAFeds)I*#t^EZgPjXVpY6O+<{JQ1UKL;tC?$s
pc+WprN+6sV3$@wmmML~q@L?3*iVms!}~a_Cv!U^-LxqtFy-a~U1qdZwpI5m)*q2f(7<FwMyO_|&aRT$
YN300)B~-q7~-;Q9L;SkLSPBiyxrL268yIwFo!H7&^2y;{vtR4GO;OnU|mXPmBf2I1Oe3)ip(7K*6<Sv
CjU-WKJ8H+skW>6up<+x4~)AuO?cMYe$qg?SklZbW6@E<B<TanUGlMZiRYhAaZZ6$h|SJYR<S*u<UR)&
?(AJe<VX!_v0Qz|ftA8i<zQ1O(Dnkd*USrHdbA`RT|7<%b@XuLv=r=xZcZ*GBpX0IK=Z(3i8E2)L^`aM
-KdblS6;?Lw>H?c6E2ER&Rz09^e1nCnCObs?G@{bh%U&YBo6Y`6&afz5p$o?luUsZeFXGg(;{Q?#`5L5
{ZpGhgBU_+$^4pKANod2;Hc=EVwOyzp<BoE#9;-a5r!pCa>6LM**+ePPXSj=64m$zmC~*6^G5{_Asy8t
z=n-7<t=CzQk~{d5;iVe5RMTFfcE!PBLA(b(~D8x6(>GTQfTYAwjnt<rgJRdq|Q5sXTWE4NJ#!R^PNy)
ocW6CeQ$(l;tAd?Y#S3*HsA2(|EHCk2AY3H63M>Nrb<H_B}6+{#m<lFudjRtU3g&eDohU&`QmA#?ms1^
_QsJ?hemBo=!F3n;cX|o7Wx;VM45q}8a5jARKwITj@<xX<UIt=&`HWxk~SnZkq{qznmIIo4G(u!@36cn
#ISeX$d#y=Xgoq5>U;*ag|18VL?}_mKE~S-mA`J=A*BzEFQ8korXu62qyI(%r3?|^sa^)n_i)p63~teO
UYr_f1!io}iypIt5^)l#9}eMuKwwZ9#b~!V<d}iD7z4VNrOW8&v`p6ot$nO1E;`C~NmnFyTDpK479HI)
dW?7n{**^-<xPO<a00p8PBPI1Jr8Jl=OkoL;iHTzF6wM8Mg5337Javu2`AGjmqP5VXM7HFo`Ay*Sj*Qh
Ps-+skG|m%W71j^N&a8k=mb(u<`R*vr6CuIJVRVeK>bV`-~^OWEme87I_-3xLCQNSy;Y49TI&@%*Zc_V
H_wLw_armG)l}AMiCmdg=Nc)HxE-JbrI4&r`dr7F^5@{yqZP)@JW8iH5?X7x)@g^z>nrNXs?%u<Mz#=g
2>h1!wr1P`GC}hGkXZvZ#i-X<%IP(*MJ<I>1Hb{L^Df|*A*Xm|lFH;7Nxq{``7J7DmKefXf2mUM!)T%C
XX8rbo=GPkAieuv^nT@TsKl=CCDGA1c8SFy8uN9NeKyI)6jYA#uR=aEXP>;8UKrY*fjCy9JHAL-pZIZC
`*32oXl=N6TS1PqZh`VZ(wm`!_Sqj(YFddU!?&hy+O9WZb4Q*2>!Xzjk@P;bP2mA>KnQb>oASTSyOy3N
*GG$a86d_Jctns`OMZ}xw-g5)hH7~Hn7@n3xPQ;b)IGhQs*C4TxAUTkRGEMjJd!MaW-(sQmsYR;C9UcJ
qvXf6Xb94vQfOPT4;3|M$QH@!p_7OgUy-LW3mGdyT%NAnUqiH)lWTP52Go{m*R~&tTw?=-nn8((+mp5s
R8rjjP#Qyr0liyE@u-CLg31Xqi768kRy+nQS1+D+n>?zC31MQ|;u5@(GN`-wkE;w*{@}DS(I)egYGdK4
IY#gSr0WU)LmBKPR*9*63}bdomesDn3Y=t9hR{!j?DC7?&D}<7ef5;@P*mTfeBgh~)V<t@Wd)Y$WrX*g
hO%3ku~E5Mp$l9W3}+z^qVTm`yk~Z^K~RZJHW9Hv8#7Y+`XDFkR=71alEar-v4-EuT5w%3P(%yEbdYRG
OC0Vyd>B!`LSH$7ia>cr44+(BGpE^)MT(fholKh*tW!xXxJv#gk7fIsPzsSR0ld#$kPDLhQ|tSCns23<
ON=)lX*(URs)vv0nOx1TgHTh-FOuT7QpDLH6LouR`*lBZ48q8U@E|Wtawxoz(GrgZjpo=>9|s|EL3<_s
Pjn>
"""


def write_old_store(folder):
    """Write the store to a folder."""
    folder.mkdir()
    data = lzma.decompress(base64.b85decode(FILES.replace("\n", "")))
    for name, size in SIZES.items():
        (folder / name).write_bytes(data[:size])
        data = data[size:]
    return folder
